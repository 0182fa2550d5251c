"""Typed expressions over rows: Spark's coercion and result types, and the portable form of each function."""
