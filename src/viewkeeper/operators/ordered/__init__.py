"""Aggregates that are no sums: values kept in order within each group, and what is read from them."""
