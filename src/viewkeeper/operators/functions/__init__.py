"""Aggregate functions, one kind a file: partial sums that add exactly, and the answer that follows from them."""
