"""The suites that there are."""

from __future__ import annotations

from bench.nexmark.suite import NEXMARK
from bench.tpch.suite import TPCH

SUITES = (TPCH, NEXMARK)
