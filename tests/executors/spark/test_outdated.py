"""State of another version of Viewkeeper under Spark's epochs: refused, told by VERIFY, and mended by REPAIR."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from viewkeeper.database import connect
from viewkeeper.errors import ConflictError
from viewkeeper.operators.layouts import FORMATS

pytestmark = pytest.mark.spark

QUERY = "SELECT c.name, COUNT(*) AS n, SUM(o.x) AS s FROM orders o JOIN clients c ON o.g = c.g GROUP BY c.name"


def test_an_epoch_by_spark_does_not_go_on_from_it(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "shop.vk"
    with connect(path, executor="local", durability="none") as database:
        database.sql("CREATE TABLE orders (k BIGINT, g BIGINT, x BIGINT, PRIMARY KEY (k))")
        database.sql("CREATE TABLE clients (g BIGINT, name STRING, PRIMARY KEY (g))")
        database.put_batch("orders", [{"k": key, "g": key % 5, "x": key} for key in range(200)])
        database.put_batch("clients", [{"g": key, "name": "abc"[key % 3]} for key in range(4)])
        database.sql(f"CREATE MATERIALIZED VIEW mended AS {QUERY}")
        database.sql(f"CREATE MATERIALIZED VIEW resumed REFRESH EVERY 1 HOUR AS {QUERY}")
    monkeypatch.setitem(FORMATS, "arrangement", FORMATS["arrangement"] + 1)
    with connect(path, executor="spark", durability="none", spark=spark) as database:
        report = database.verify("mended", repair=True)
        assert [state.kind for state in report.wrong_states] == ["state of another version"]
        assert not report.missing_count
        database.put_batch("clients", [{"g": 4, "name": "d"}, {"g": 0, "name": "e"}])
        with pytest.raises(ConflictError, match="STATE_OUTDATED") as refused:
            database.refresh()
        assert refused.value.details["views"] == ["resumed"]
        database.sql("ALTER MATERIALIZED VIEW resumed RESUME")
        wanted = sorted(map(str, database.sql(QUERY).rows()))
        for name in ("mended", "resumed"):
            assert sorted(map(str, database.sql(f"SELECT * FROM {name}").rows())) == wanted
            assert database.verify(name).ok
