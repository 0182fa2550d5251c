"""Spark's functions that are no expressions over one row, by what they are."""

from __future__ import annotations

AGGREGATES = frozenset((
    "any", "any_value", "approx_count_distinct", "approx_percentile", "array_agg", "avg", "bit_and", "bit_or",
    "bit_xor", "bool_and", "bool_or", "collect_list", "collect_set", "corr", "count", "count_if", "covar_pop",
    "covar_samp", "every", "first", "first_value", "kurtosis", "last", "last_value", "listagg", "max", "max_by", "mean",
    "median", "min", "min_by", "mode", "percentile", "percentile_approx", "percentile_cont", "percentile_disc",
    "regr_avgx", "regr_avgy", "regr_count", "regr_intercept", "regr_r2", "regr_slope", "regr_sxx", "regr_sxy",
    "regr_syy", "skewness", "some", "std", "stddev", "stddev_pop", "stddev_samp", "string_agg", "sum", "try_avg",
    "try_sum", "var_pop", "var_samp", "variance",
))  # fmt: skip
"""The aggregate functions of the view grammar."""

OTHER_AGGREGATES = frozenset((
    "approx_top_k", "approx_top_k_accumulate", "approx_top_k_combine", "bitmap_and_agg", "bitmap_construct_agg",
    "bitmap_or_agg", "collect_union", "count_min_sketch", "histogram_numeric", "hll_sketch_agg", "hll_union_agg",
    "kll_merge_agg_bigint", "kll_merge_agg_double", "kll_merge_agg_float", "kll_sketch_agg_bigint",
    "kll_sketch_agg_double", "kll_sketch_agg_float", "measure", "schema_of_variant_agg", "theta_intersection_agg",
    "theta_sketch_agg", "theta_union_agg", "tuple_intersection_agg_double",
    "tuple_intersection_agg_integer", "tuple_sketch_agg_double", "tuple_sketch_agg_integer", "tuple_union_agg_double",
    "tuple_union_agg_integer", "vector_avg", "vector_sum",
))  # fmt: skip

_VECTORS = "Aggregate the elements one by one: SUM(v[0]), AVG(v[1])."
IN_PLACE_OF_AGGREGATES = {
    "collect_union": "Write array_distinct(flatten(collect_list(…))).",
    "measure": "Write the aggregate that the measure stands for.",
    "schema_of_variant_agg": "Write COLLECT_SET(schema_of_variant(…)).",
    "vector_avg": _VECTORS,
    "vector_sum": _VECTORS,
}
"""What to write in place of other aggregates that are neither sketches nor histograms."""

GROUPING_FUNCTIONS = frozenset(("grouping", "grouping_id"))
"""Functions that tell the groupings of CUBE, ROLLUP and GROUPING SETS apart."""

GENERATORS = frozenset((
    "explode", "explode_outer", "posexplode", "posexplode_outer", "inline", "inline_outer", "stack", "json_tuple",
    "variant_explode", "variant_explode_outer",
))  # fmt: skip
"""Functions that return several rows for one."""

WINDOW_ONLY = frozenset((
    "row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile", "lag", "lead", "nth_value",
    "counter_diff",
))  # fmt: skip

WITHOUT_PARENTHESES = frozenset(("localtimestamp", "localtime", "current_time", "user", "session_user", "current_path"))
"""Functions that Spark also calls by their bare name, where no column is called so; the parser knows the others."""

TABLE_FUNCTIONS = frozenset(("collations", "python_worker_logs", "range", "sql_keywords"))
"""Functions that stand in FROM alone; of these a view takes range()."""

TIME_WINDOWS = frozenset(("window", "session_window", "window_time"))
"""Functions that put a row into windows of time, and take the time out of one."""

CAST_FUNCTIONS = {
    "boolean": "BOOLEAN", "tinyint": "TINYINT", "smallint": "SMALLINT", "int": "INT", "bigint": "BIGINT",
    "float": "FLOAT", "double": "DOUBLE", "string": "STRING", "binary": "BINARY", "date": "DATE",
    "timestamp": "TIMESTAMP",
}  # fmt: skip
"""Functions that are casts, with their type."""

_UNIT_NAMES = {
    "year": ("y", "year", "years", "yr", "yrs"), "quarter": ("quarter", "qtr"),
    "month": ("month", "mon", "mons", "months"), "weekofyear": ("week", "w", "weeks"), "day": ("day", "d", "days"),
    "dayofweek": ("dayofweek", "dow"), "dayofyear": ("doy",), "hour": ("hour", "h", "hours", "hr", "hrs"),
    "minute": ("minute", "m", "min", "mins", "minutes"),
    "second_with_fraction": ("second", "s", "sec", "seconds", "secs"),
}  # fmt: skip
EXTRACTED = {unit: function for function, units in _UNIT_NAMES.items() for unit in units}
"""What EXTRACT takes out of a moment, with the function that does the same."""

WITH_UNIT = frozenset(("date_add", "dateadd", "timestampadd", "datediff", "date_diff", "timediff", "timestampdiff"))
"""Functions that take a unit as a word before two other arguments."""

UNITS = frozenset((
    "YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "DAYOFYEAR", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND",
))  # fmt: skip
