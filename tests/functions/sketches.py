"""Sample calls of functions over sketches, which Spark's own aggregates make for the test."""

from __future__ import annotations

SKETCHES = {
    "hll": "hll_sketch_agg(n)", "theta": "theta_sketch_agg(n)", "kll_bigint": "kll_sketch_agg_bigint(n)",
    "kll_double": "kll_sketch_agg_double(CAST(n AS DOUBLE))", "kll_float": "kll_sketch_agg_float(CAST(n AS FLOAT))",
    "tuple_double": "tuple_sketch_agg_double(n, 2.0D)", "tuple_integer": "tuple_sketch_agg_integer(n, 2)",
}  # fmt: skip
"""Aggregates by the name that the calls below have for their result, a constant of type BINARY."""

_SETS = ("union", "intersection", "difference")
CALLS: dict[str, tuple[str, ...]] = {
    "hll_sketch_estimate": ("hll_sketch_estimate({hll})",),
    "hll_union": ("hll_sketch_estimate(hll_union({hll}, {hll}))",),
    **{
        name: (call.replace("TYPE", kind),)
        for kind in ("bigint", "double", "float")
        for name, call in {
            f"kll_sketch_get_n_{kind}": "kll_sketch_get_n_TYPE({kll_TYPE})",
            f"kll_sketch_get_quantile_{kind}": "kll_sketch_get_quantile_TYPE({kll_TYPE}, 0.5)",
            f"kll_sketch_get_rank_{kind}": "kll_sketch_get_rank_TYPE({kll_TYPE}, CAST(2 AS TYPE))",
            f"kll_sketch_merge_{kind}": "kll_sketch_get_n_TYPE(kll_sketch_merge_TYPE({kll_TYPE}, {kll_TYPE}))",
            f"kll_sketch_to_string_{kind}": "length(kll_sketch_to_string_TYPE({kll_TYPE}))",
        }.items()
    },
    "theta_sketch_estimate": ("theta_sketch_estimate({theta})",),
    **{f"theta_{name}": (f"theta_sketch_estimate(theta_{name}({{theta}}, {{theta}}))",) for name in _SETS},
    **{
        name: (call.replace("TYPE", kind),)
        for kind in ("double", "integer")
        for name, call in {
            f"tuple_sketch_estimate_{kind}": "tuple_sketch_estimate_TYPE({tuple_TYPE})",
            f"tuple_sketch_summary_{kind}": "tuple_sketch_summary_TYPE({tuple_TYPE})",
            f"tuple_sketch_theta_{kind}": "tuple_sketch_theta_TYPE({tuple_TYPE})",
            **{
                f"tuple_{name}_{kind}": f"tuple_sketch_estimate_TYPE(tuple_{name}_TYPE({{tuple_TYPE}}, {{tuple_TYPE}}))"
                for name in _SETS
            },
            **{
                f"tuple_{name}_theta_{kind}": (
                    f"tuple_sketch_estimate_TYPE(tuple_{name}_theta_TYPE({{tuple_TYPE}}, {{theta}}))"
                )
                for name in _SETS
            },
        }.items()
    },
}  # fmt: skip
