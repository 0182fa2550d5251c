"""One Spark session for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from viewkeeper.executors.spark.session import spark_session


@pytest.fixture(scope="package")
def spark() -> Iterator[SparkSession]:
    session = spark_session()
    yield session
    session.stop()
