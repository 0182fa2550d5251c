"""Drawn cases are the same at each run and have no deadline: two cores are shared by many."""

from hypothesis import HealthCheck, settings

settings.register_profile("zset", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("zset")
