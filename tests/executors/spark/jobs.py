"""What Spark's status tracker tells of jobs: how many there were, of how many stages and tasks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession


@contextmanager
def job_group(spark: SparkSession, name: str) -> Iterator[None]:
    """Put the block's jobs into a group of that name."""
    spark.sparkContext.setJobGroup(name, name)
    yield
    spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)


def shape(spark: SparkSession, group: str) -> list[list[int]]:
    """Return for each job of the group the numbers of tasks of its stages."""
    tracker = spark.sparkContext.statusTracker()
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
    stages = [[tracker.getStageInfo(stage) for stage in job.stageIds] for job in jobs if job is not None]
    return [[stage.numTasks for stage in some if stage is not None] for some in stages]
