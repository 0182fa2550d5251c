"""Every figure of bench/results: ``python -m bench [--quick] [--only NAME,...]``."""
