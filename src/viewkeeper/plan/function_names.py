"""Spark's functions that are no expressions over one row, by what they are."""

from __future__ import annotations

AGGREGATES = frozenset((
    "any", "any_value", "approx_count_distinct", "approx_percentile", "array_agg", "avg", "bit_and", "bit_or",
    "bit_xor", "bool_and", "bool_or", "collect_list", "collect_set", "corr", "count", "count_if", "covar_pop",
    "covar_samp", "every", "first", "first_value", "kurtosis", "last", "last_value", "listagg", "max", "max_by", "mean",
    "median", "min", "min_by", "mode", "percentile", "percentile_approx", "percentile_cont", "percentile_disc",
    "regr_avgx", "regr_avgy", "regr_count", "regr_intercept", "regr_r2", "regr_slope", "regr_sxx", "regr_sxy",
    "regr_syy", "skewness", "some", "std", "stddev", "stddev_pop", "stddev_samp", "string_agg", "sum", "var_pop",
    "var_samp", "variance",
))  # fmt: skip
"""The aggregate functions of the view grammar."""

OTHER_AGGREGATES = frozenset((
    "approx_top_k", "bitmap_and_agg", "bitmap_construct_agg", "bitmap_or_agg", "count_min_sketch", "histogram_numeric",
    "hll_sketch_agg", "hll_union_agg", "try_avg", "try_sum",
))  # fmt: skip

GROUPING_FUNCTIONS = frozenset(("grouping", "grouping_id"))
"""Functions that tell the groupings of CUBE, ROLLUP and GROUPING SETS apart."""

GENERATORS = frozenset((
    "explode", "explode_outer", "posexplode", "posexplode_outer", "inline", "inline_outer", "stack", "json_tuple",
))  # fmt: skip
"""Functions that return several rows for one."""

WINDOW_ONLY = frozenset((
    "row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile", "lag", "lead", "nth_value",
))  # fmt: skip

CAST_FUNCTIONS = {
    "boolean": "BOOLEAN", "tinyint": "TINYINT", "smallint": "SMALLINT", "int": "INT", "bigint": "BIGINT",
    "float": "FLOAT", "double": "DOUBLE", "string": "STRING", "binary": "BINARY", "date": "DATE",
    "timestamp": "TIMESTAMP",
}  # fmt: skip
"""Functions that are casts, with their type."""
