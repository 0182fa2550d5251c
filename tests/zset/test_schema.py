"""Schemas: what travels with an epoch is no more than their columns."""

import pickle

from viewkeeper.zset.schema import BIGINT, STRING, Column, Schema


def test_a_pickle_holds_the_columns_only():
    schema = Schema((Column("k", BIGINT, nullable=False), Column("name", STRING)))
    before = pickle.dumps(schema)
    assert schema.to_arrow() is schema.to_arrow()
    assert pickle.dumps(schema) == before
    assert pickle.loads(before) == schema
