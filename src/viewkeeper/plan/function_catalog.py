"""Every function of Spark SQL 4.3 by what a view does with it; a test asks Spark for its list and finds each here.

Portable functions are computed by us, some only for certain types; the others here by Catalyst, in the fused job. What
a view does not take has a reason, and what to use instead.
"""

from __future__ import annotations

from viewkeeper.expressions.registry import NONDETERMINISTIC
from viewkeeper.plan import function_names as names

PORTABLE: dict[str, tuple[str, ...]] = {
    "comparison and logic": (
        "!", "!=", "<", "<=", "<=>", "<>", "=", "==", ">", ">=", "and", "equal_null", "ilike", "in", "isnan",
        "isnotnull", "isnull", "like", "not", "or", "regexp", "regexp_like", "rlike",
    ),
    "choice": (
        "between", "case", "coalesce", "if", "ifnull", "nanvl", "nullif", "nullifzero", "nvl", "nvl2", "when",
        "zeroifnull",
    ),
    "numbers": (
        "%", "*", "+", "-", "/", "abs", "bin", "bround", "ceil", "ceiling", "div", "e", "floor", "greatest",
        "hex", "least", "mod", "negative", "pi", "pmod", "positive", "rint", "round", "sign", "signum", "sqrt",
        "try_add", "try_divide", "try_mod", "try_multiply", "try_subtract", "unhex",
    ),
    "bits": ("&", "<<", ">>", ">>>", "^", "bit_count", "shiftleft", "shiftright", "shiftrightunsigned", "|", "~"),
    "hashes": ("crc32", "md5", "sha", "sha1", "sha2"),
    "various": ("typeof",),
    "casts": (
        "bigint", "binary", "boolean", "cast", "date", "double", "float", "int", "smallint", "string",
        "timestamp", "tinyint",
    ),
    "strings and bytes": (
        "ascii", "base64", "bit_length", "btrim", "char", "char_length", "character_length", "chr", "concat_ws",
        "contains", "endswith", "find_in_set", "instr", "lcase", "left", "len", "length", "locate", "lower",
        "lpad", "ltrim", "octet_length", "position", "regexp_count", "regexp_extract", "regexp_extract_all",
        "regexp_instr", "regexp_replace", "regexp_substr", "repeat", "replace", "right", "rpad", "rtrim", "space",
        "split", "split_part", "startswith", "substr", "substring", "substring_index", "translate", "trim",
        "ucase", "upper", "||",
    ),
    "collections": ("cardinality", "concat", "reverse", "size", "try_element_at"),
    "dates and times": (
        "add_months", "date_add", "date_diff", "date_format", "date_from_unix_date", "date_part", "date_sub",
        "date_trunc", "dateadd", "datediff", "datepart", "day", "dayname", "dayofmonth", "dayofweek",
        "dayofyear", "extract", "from_utc_timestamp", "hour", "last_day", "make_date", "minute", "month",
        "monthname", "months_between", "next_day", "quarter", "second", "timestamp_micros", "timestamp_millis",
        "timestamp_seconds", "to_date", "to_timestamp", "to_unix_timestamp", "to_utc_timestamp", "trunc",
        "unix_date", "unix_micros", "unix_millis", "unix_seconds", "unix_timestamp", "weekday", "weekofyear",
        "year",
    ),
    "arrays": ("array", "array_contains", "array_join", "array_position", "array_size", "get", "sequence"),
    "maps": ("map_keys", "map_values"),
}  # fmt: skip
"""Scalar functions of which at least common calls need no Java, by family."""

BY_CATALYST: dict[str, tuple[str, ...]] = {
    "bits": ("bit_get", "getbit"),
    "numbers": (
        "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "conv", "cos", "cosh", "cot", "csc",
        "degrees", "exp", "expm1", "factorial", "hypot", "ln", "log", "log10", "log1p", "log2", "pow", "power",
        "radians", "sec", "sin", "sinh", "tan", "tanh", "width_bucket",
    ),
    "various": (
        "aes_decrypt", "aes_encrypt", "assert_true", "bitmap_bit_position", "bitmap_bucket_number",
        "bitmap_count", "hmac", "raise_error", "try_aes_decrypt",
    ),
    "hashes": ("hash", "xxhash64"),
    "casts": ("decimal",),
    "strings and bytes": (
        "collate", "collation", "decode", "elt", "encode", "format_number", "format_string", "from_base32",
        "initcap", "is_valid_utf8", "jaro_winkler_similarity", "levenshtein", "luhn_check", "make_valid_utf8",
        "mask", "overlay", "printf", "quote", "sentences", "soundex", "to_base32", "to_binary",
        "to_char", "to_number", "to_varchar", "try_to_binary", "try_to_number", "try_validate_utf8", "unbase64",
        "validate_utf8",
    ),
    "URLs": ("parse_url", "try_parse_url", "try_url_decode", "url_decode", "url_encode"),
    "XML": (
        "from_xml", "schema_of_xml", "to_xml", "xpath", "xpath_boolean", "xpath_double", "xpath_float",
        "xpath_int", "xpath_long", "xpath_number", "xpath_short", "xpath_string",
    ),
    "dates and times": (
        "convert_timezone", "current_timezone", "from_unixtime", "make_dt_interval", "make_interval",
        "make_timestamp", "make_timestamp_ltz", "make_timestamp_ntz", "make_ym_interval", "time_bucket",
        "timestamp_nanos", "to_timestamp_ltz", "to_timestamp_ntz", "try_make_interval", "try_make_timestamp",
        "try_make_timestamp_ltz", "try_make_timestamp_ntz", "try_to_date", "try_to_timestamp",
    ),
    "arrays": (
        "array_append", "array_compact", "array_distinct", "array_except", "array_insert", "array_intersect",
        "array_max", "array_min", "array_prepend", "array_remove", "array_repeat", "array_union",
        "arrays_overlap", "arrays_zip", "flatten", "slice", "sort_array",
    ),
    "collections": ("element_at",),
    "arrays and maps by lambda": (
        "aggregate", "array_sort", "exists", "filter", "forall", "map_filter", "map_zip_with", "reduce",
        "transform", "transform_keys", "transform_values", "zip_with",
    ),
    "maps": (
        "map", "map_concat", "map_contains_key", "map_entries", "map_from_arrays", "map_from_entries",
        "str_to_map",
    ),
    "structures": ("named_struct", "struct"),
    "JSON": ("from_json", "get_json_object", "json_array_length", "json_object_keys", "schema_of_json", "to_json"),
    "CSV": ("from_csv", "schema_of_csv", "to_csv"),
    "VARIANT": (
        "is_valid_variant", "is_variant_null", "parse_json", "schema_of_variant", "to_variant_object",
        "try_parse_json", "try_variant_array_append", "try_variant_get", "try_variant_insert",
        "try_variant_set", "variant_array_append", "variant_delete", "variant_get", "variant_insert",
        "variant_set", "variant_strip_nulls",
    ),
    "vectors": (
        "vector_cosine_similarity", "vector_inner_product", "vector_l2_distance", "vector_norm",
        "vector_normalize",
    ),
    "geography": ("st_asbinary", "st_geogfromwkb", "st_geomfromwkb", "st_setsrid", "st_srid"),
    "sketches": (
        "hll_sketch_estimate", "hll_union", "kll_sketch_get_n_bigint", "kll_sketch_get_n_double",
        "kll_sketch_get_n_float", "kll_sketch_get_quantile_bigint", "kll_sketch_get_quantile_double",
        "kll_sketch_get_quantile_float", "kll_sketch_get_rank_bigint", "kll_sketch_get_rank_double",
        "kll_sketch_get_rank_float", "kll_sketch_merge_bigint", "kll_sketch_merge_double",
        "kll_sketch_merge_float", "kll_sketch_to_string_bigint", "kll_sketch_to_string_double",
        "kll_sketch_to_string_float", "theta_difference", "theta_intersection", "theta_sketch_estimate",
        "theta_union", "tuple_difference_double", "tuple_difference_integer", "tuple_difference_theta_double",
        "tuple_difference_theta_integer", "tuple_intersection_double", "tuple_intersection_integer",
        "tuple_intersection_theta_double", "tuple_intersection_theta_integer", "tuple_sketch_estimate_double",
        "tuple_sketch_estimate_integer", "tuple_sketch_summary_double", "tuple_sketch_summary_integer",
        "tuple_sketch_theta_double", "tuple_sketch_theta_integer", "tuple_union_double", "tuple_union_integer",
        "tuple_union_theta_double", "tuple_union_theta_integer",
    ),
}  # fmt: skip
"""Scalar functions that Spark evaluates."""

_TIME = "Spark 4.3 itself refuses the type TIME unless it is switched on; store the time as INT, or as TIMESTAMP_NTZ"
_PACKAGE = "needs a package that is not part of Spark; decode the bytes when the row is written"
_SKETCH = "its argument comes from an aggregate that no view has; use COUNT(*) by group, ordered, with LIMIT"
_IN_FROM = "makes a table of Spark's own; store its rows in a table"
UNAVAILABLE: dict[str, str] = {
    **dict.fromkeys(
        ("make_time", "time", "time_diff", "time_from_micros", "time_from_millis", "time_from_seconds",
         "time_to_micros", "time_to_millis", "time_to_seconds", "time_trunc", "to_time", "try_to_time"),
        _TIME,
    ),
    **dict.fromkeys(("from_avro", "to_avro", "schema_of_avro", "from_protobuf", "to_protobuf"), _PACKAGE),
    "approx_top_k_estimate": _SKETCH,
    "unix_nanos": "takes times of nine digits, which no column has; use unix_micros(ts) * 1000",
    **dict.fromkeys(sorted(names.TABLE_FUNCTIONS - {"range"}), _IN_FROM),
    **dict.fromkeys(("variant_explode", "variant_explode_outer"),
                    "not yet a generator of views; use explode(from_json(…))"),
    "counter_diff": "not yet a window function of views; use c - LAG(c) OVER (…)",
}  # fmt: skip
"""Deterministic functions that a view does not take, each with the reason."""


def every_function() -> frozenset[str]:
    """Return the name of every function that this catalogue knows."""
    scalar = [name for family in (*PORTABLE.values(), *BY_CATALYST.values()) for name in family]
    rows = names.AGGREGATES | names.OTHER_AGGREGATES | names.GROUPING_FUNCTIONS | names.GENERATORS
    rows |= names.TIME_WINDOWS
    return rows | names.WINDOW_ONLY | names.TABLE_FUNCTIONS | {*scalar, *UNAVAILABLE, *NONDETERMINISTIC}


SPARK_FUNCTIONS = frozenset(name for name in every_function() if name.isidentifier())
"""The names of Spark's functions, operators left out, which users' functions cannot take."""


def functions_page() -> str:
    """Return ``docs/spark_functions.md``."""
    taken = sum(map(len, (*PORTABLE.values(), *BY_CATALYST.values())))
    lines = [
        "# Functions of Spark SQL",
        "",
        "Written from `src/viewkeeper/plan/function_catalog.py` by `make docs`.",
        f"Spark SQL 4.3 lists {len(every_function())} functions and operators; a test asks it for them, and fails",
        f"where one is missing here. Each of the {taken} scalar functions that views take is called on edge values",
        "in views (`tests/functions`): type, nullability and rows are Spark's, when filled, after inserts, updates and",
        "deletes.",
        "",
        "## Portable: no Java needed",
        "",
        "Computed by us on Arrow batches, for the types and arguments that [expressions.md](expressions.md) names;",
        "other calls of them go to Catalyst.",
        "",
        *_table(PORTABLE),
        "",
        "## By Catalyst",
        "",
        "A view with one of these runs on Spark. They are computed inside the fused job, without a stage of their own.",
        "",
        *_table(BY_CATALYST),
        "",
        "## Aggregates, windows, generators",
        "",
        "| kind | functions |",
        "| --- | --- |",
        f"| aggregates | {_listed(sorted(names.AGGREGATES))} |",
        f"| with GROUPING SETS | {_listed(sorted(names.GROUPING_FUNCTIONS))} |",
        f"| window functions, beside the aggregates | {_listed(sorted(names.WINDOW_ONLY - UNAVAILABLE.keys()))} |",
        f"| generators | {_listed(sorted((names.GENERATORS | {'range'}) - UNAVAILABLE.keys()))} |",
        f"| windows of time | {_listed(sorted(names.TIME_WINDOWS))} |",
        "",
        "## Refused",
        "",
        "| function | why | what to use |",
        "| --- | --- | --- |",
        *(f"| `{name}` | not fixed by the row | {instead} |" for name, instead in sorted(NONDETERMINISTIC.items())),
        "| `unix_timestamp()` without arguments | not fixed by the row | a column that holds the moment |",
    ]
    for name, reason in sorted(UNAVAILABLE.items()):
        why, _, instead = reason.rpartition("; ")
        lines.append(f"| `{name}` | {why} | {instead.removeprefix('use ')} |")
    for name, instead in names.IN_PLACE_OF_AGGREGATES.items():
        lines.append(f"| `{name}` | an aggregate not yet kept | {instead[0].lower()}{instead[1:].rstrip('.')} |")
    sketches = _listed(sorted(names.OTHER_AGGREGATES - names.IN_PLACE_OF_AGGREGATES.keys()))
    lines.append(f"| {sketches} | sketches and histograms | exact aggregates, COUNT(*) by group |")
    return "\n".join(lines) + "\n"


def _table(families: dict[str, tuple[str, ...]]) -> list[str]:
    rows = [f"| {family} | {_listed(found)} |" for family, found in families.items()]
    return ["| family | functions |", "| --- | --- |", *rows]


def _listed(found: list[str] | tuple[str, ...]) -> str:
    return " ".join(f"`{name}`".replace("|", "\\|") for name in found)
