"""Suites: known sets of tables and queries, each query a view of one store, measured beside full recomputation."""
