"""Linear nodes to operators: no state, no rows that move."""

from __future__ import annotations

from viewkeeper.expressions.casting import cast
from viewkeeper.expressions.tree import ColumnRef, Session
from viewkeeper.operators.circuit import Source
from viewkeeper.operators.expand import Expand
from viewkeeper.operators.filter import Filter
from viewkeeper.operators.generate import Generate
from viewkeeper.operators.project import Project
from viewkeeper.operators.repeat import Repeat
from viewkeeper.operators.union import UnionAll
from viewkeeper.plan import nodes as plan
from viewkeeper.plan.compile.compiler import Compiled, Compiler, compiles, through, through_positions


@compiles(plan.Scan)
def _scan(compiler: Compiler, node: plan.Scan, session: Session) -> Compiled:
    relation = node.relation
    if relation.kind == "view":
        source, places = compiler.root(relation.id), node.columns
    else:
        schema = compiler.tables[relation.id]
        at = relation.places or tuple(range(len(schema)))
        source_id = compiler.add(Source(relation.id, schema), (), f"table {relation.id}")
        source = Compiled(source_id, schema, tuple(at[i] for i in relation.key or ()), None)
        places = tuple(at[i] for i in node.columns)
    # Also where all columns are taken: the table may get more, and state must keep its name then.
    references = tuple(ColumnRef(place, source.schema.types[place]) for place in places)
    # By the types that the view knows, whatever the columns have become: its state keeps its name until it is refilled.
    text = f"columns {node.numbers} as {tuple(map(str, node.schema.types))}"
    pairs = zip(references, node.schema.types, strict=True)
    # A view knows the type that a column had when it was made, until it is filled anew with the wider one.
    expressions = tuple(r if r.type == sql_type else cast(r, sql_type, Session()) for r, sql_type in pairs)
    operator = Project(node.schema, expressions, Session(), compiler.site_for(expressions, source, text))
    id_ = compiler.add(operator, (source.id,), text)
    return Compiled(id_, node.schema, node.key, through(source.partition, expressions))


@compiles(plan.Filter)
def _filter(compiler: Compiler, node: plan.Filter, session: Session) -> Compiled:
    given = compiler.node(node.input, session)
    source, (condition,) = compiler.by_spark(given, (node.condition,), session)
    text = f"filter {condition!r} {session!r}"
    site = compiler.site_for((condition,), source, text)
    id_ = compiler.add(Filter(source.schema, condition, session, site), (source.id,), text)
    if source is not given:
        # The column that Spark computed has done its work.
        kept = tuple(ColumnRef(i, c.type, c.nullable) for i, c in enumerate(given.schema.columns))
        id_ = compiler.add(Project(node.schema, kept, session, None), (id_,), f"columns {len(kept)}")
    return Compiled(id_, node.schema, node.key, source.partition)


@compiles(plan.Project)
def _project(compiler: Compiler, node: plan.Project, session: Session) -> Compiled:
    source, expressions = compiler.by_spark(compiler.node(node.input, session), node.expressions, session)
    text = f"project {expressions!r} {session!r}"
    site = compiler.site_for(expressions, source, text)
    id_ = compiler.add(Project(node.schema, expressions, session, site), (source.id,), text)
    return Compiled(id_, node.schema, node.key, through(source.partition, expressions))


@compiles(plan.UnionAll)
def _union(compiler: Compiler, node: plan.UnionAll, session: Session) -> Compiled:
    sources = [compiler.node(child, session) for child in node.inputs]
    id_ = compiler.add(UnionAll(node.schema, len(sources)), tuple(s.id for s in sources), "union")
    return Compiled(id_, node.schema, node.key, None)


@compiles(plan.Expand)
def _expand(compiler: Compiler, node: plan.Expand, session: Session) -> Compiled:
    source = compiler.node(node.input, session)
    id_ = compiler.add(Expand(node.schema, node.projections), (source.id,), f"expand {node.projections!r}")
    return Compiled(id_, node.schema, node.key, None)


@compiles(plan.Generate)
def _generate(compiler: Compiler, node: plan.Generate, session: Session) -> Compiled:
    source, (collection,) = compiler.by_spark(compiler.node(node.input, session), (node.collection,), session)
    text = f"generate {node.kept} {collection!r} {node.outer} {node.inline} {session!r}"
    site = compiler.site_for((collection,), source, text)
    operator = Generate(node.schema, node.kept, collection, node.outer, node.inline, session, site)
    id_ = compiler.add(operator, (source.id,), text)
    return Compiled(id_, node.schema, node.key, through_positions(source.partition, node.kept))


@compiles(plan.Repeat)
def _repeat(compiler: Compiler, node: plan.Repeat, session: Session) -> Compiled:
    source = compiler.node(node.input, session)
    rows = tuple(range(len(node.schema) - 1))
    # All changes of a row's count must meet, so that copies which stay are never written out.
    netted = compiler.exchange(source, rows, nets=True)
    id_ = compiler.add(Repeat(node.schema), (netted.id,), "repeat")
    return Compiled(id_, node.schema, node.key, netted.partition)
