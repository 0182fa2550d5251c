"""Which views of an epoch are stepped and which are recomputed: gathers the figures, decides, remembers what it took.

``pipeline/policy.py`` has the rule. What this adds is the store: figures and counts are read when an epoch is planned;
decision and measurement are written when it is published, so an epoch that is run again decides again.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from viewkeeper.log import reader
from viewkeeper.operators.circuit import Source
from viewkeeper.pipeline.choose import executor_for
from viewkeeper.pipeline.costs import Concern, rows_of, seconds_of
from viewkeeper.pipeline.decisions import Decision, read_figures, write_decision, write_figures
from viewkeeper.pipeline.epoch import EpochPlan, EpochResult, Members
from viewkeeper.pipeline.policy import (
    FEW_CHANGES,
    FULL,
    INCREMENTAL,
    NO_CHANGES,
    POLICY,
    QUICK_SECONDS,
    ROWS_THAT_TELL,
    TOGETHER,
    Choice,
    Executors,
    Figures,
    Prospect,
    Way,
    fixed_choice,
    is_quick,
    weigh,
)
from viewkeeper.pipeline.recompute import mix, stored_name, whole_namespace
from viewkeeper.plan.compile import Compilation
from viewkeeper.plan.limits import recomputed
from viewkeeper.plan.refusals import RECOMPUTED
from viewkeeper.settings import Settings
from viewkeeper.store.key_value import ReadTransaction, WriteTransaction
from viewkeeper.store.tables import format_of
from viewkeeper.views.catalog import Catalog
from viewkeeper.views.definition import ViewDefinition
from viewkeeper.views.planning import Planner

Judge = Callable[[Sequence[Prospect], Executors, bool], "tuple[Way, str]"]
# Nothing was weighed: such an epoch is remembered only where it took long.
_PLAIN = (POLICY, NO_CHANGES, FEW_CHANGES)
_MIXED_KEPT = 16
Replan = Callable[[], "EpochPlan | None"]


@dataclass
class _Cast:
    """What is remembered of a cadence's views while the catalog stands."""

    members: Members
    views: tuple[ViewDefinition, ...]
    groups: tuple[tuple[int, ...], ...]
    quick: Mapping[int, Choice]
    is_weighed: bool
    recomputed: Mapping[int, str]
    mixed: dict[frozenset[int], tuple[Members, Mapping[int, Concern]]] = field(default_factory=dict)
    stepped: Mapping[int, Concern] | None = None


class Ways:
    """Decides for the epochs of one coordinator.

    Args:
        planner: compiles the views.
        settings: which executor when.
        available: the executors there are.
    """

    def __init__(self, planner: Planner, settings: Settings, available: Sequence[str]) -> None:
        self._planner = planner
        self._settings = settings
        self._available = tuple(available)
        self._casts: dict[str, _Cast] = {}
        self._figures: dict[int, Figures] = {}
        # A simulation draws ways instead, also where an epoch is quick.
        self.judge: Judge = weigh
        self.quick_seconds = QUICK_SECONDS
        self._measures_all = False

    def keep(self, cadences: Container[str], views: Container[int]) -> None:
        """Forget what is known of all cadences and views but these, by name and by id."""
        self._casts = {name: cast for name, cast in list(self._casts.items()) if name in cadences}
        self._figures = {view: figures for view, figures in list(self._figures.items()) if view in views}

    @contextmanager
    def measuring_all(self) -> Iterator[None]:
        """Predict and measure inside the block also what is quick, for EXPLAIN ANALYZE."""
        self._measures_all = True
        try:
            yield
        finally:
            self._measures_all = False

    # ---- before an epoch ----

    def decided(
        self,
        base: ReadTransaction,
        views: ReadTransaction,
        catalog: Catalog,
        plan: EpochPlan,
        replan: Replan,
        room_bytes: int,
        closely: bool,
    ) -> EpochPlan:
        """Return ``plan`` with a way for each of its views.

        Args:
            base: a read transaction of the base space.
            views: a read transaction of the views space.
            catalog: the catalog that the plan was made from.
            plan: the next epoch, of a size that stepping can take.
            replan: plans it anew with all that waits: where every view is recomputed, nothing of the log is read.
            room_bytes: how many bytes of rows fit into memory at once.
            closely: predict also what is too quick to be weighed, for EXPLAIN.
        """
        cast = self._cast(catalog, plan.members)
        if not (closely or self._measures_all or cast.is_weighed) and self._is_quick(views, cast, plan):
            return replace(plan, choices=cast.quick)
        everything = replan() or plan
        choices = self._choices(base, views, catalog, cast, everything, room_bytes)
        if all(choice.way == FULL for choice in choices.values()):
            return self._with(base, catalog, cast, everything, choices)
        if everything.to != plan.to:
            choices = self._choices(base, views, catalog, cast, plan, room_bytes)
        return self._with(base, catalog, cast, plan, choices)

    def _cast(self, catalog: Catalog, members: Members) -> _Cast:
        known = self._casts.get(members.cadence)
        if known is not None and known.members is members:
            return known
        views = tuple(catalog.views[id_] for id_ in members.compilation.views)
        quick = {
            view.id: Choice(INCREMENTAL, POLICY if view.policy == "INCREMENTAL" else FEW_CHANGES) for view in views
        }
        groups = _groups(members.compilation, [view.id for view in views if view.policy == "AUTO"])
        found = ((v.id, recomputed(self._planner.plan(catalog, v).root)) for v in views if v.policy == "AUTO")
        anew = {id_: code for id_, code in found if code is not None}
        is_weighed = bool(anew) or any(view.policy == "FULL" for view in views)
        made = _Cast(members, views, groups, quick, is_weighed, anew)
        if known is not None and known.members.compilation is members.compilation:
            made.stepped = known.stepped
            made.mixed = {
                ids: (replace(members, mixed=mixed.mixed), concerns) for ids, (mixed, concerns) in known.mixed.items()
            }
        self._casts[members.cadence] = made
        return made

    def _is_quick(self, views: ReadTransaction, cast: _Cast, plan: EpochPlan) -> bool:
        """Return whether no view of policy AUTO takes long enough to be weighed."""
        executor = self._executor(plan.rows, cast.members)
        for view in cast.views:
            if view.policy == "AUTO":
                figures = self._figures.get(view.id)
                if figures is None:
                    figures = self._figures[view.id] = read_figures(views, view.id)
                if not is_quick(figures, executor, plan.rows, self.quick_seconds):
                    return False
        return True

    def _executor(self, rows: int, members: Members) -> str:
        return executor_for(rows, members.needs_spark, self._settings, self._available)

    def _choices(
        self,
        base: ReadTransaction,
        views: ReadTransaction,
        catalog: Catalog,
        cast: _Cast,
        plan: EpochPlan,
        room_bytes: int,
    ) -> dict[int, Choice]:
        changed = reader.rows_by_table(base, plan.after, plan.to, tuple(cast.members.tables))
        there = {id_: base.count(format_of(table).database) for id_, table in cast.members.tables.items()}
        prospects: dict[int, Prospect] = {}
        for view in cast.views:
            figures = self._figures[view.id] = read_figures(views, view.id)
            tables = catalog.base_tables_of(view)
            prospects[view.id] = Prospect(figures, sum(changed[t] for t in tables), sum(there[t] for t in tables))
        executors = Executors(
            self._executor(plan.rows, cast.members), self._executor(sum(there.values()), cast.members)
        )
        found = {view.id: self._by_policy(view, prospects[view.id], executors) for view in cast.views}
        row_bytes = plan.log_bytes // max(plan.rows, 1)
        for ids in cast.groups:
            group = [prospects[id_] for id_ in ids]
            read = {table for id_ in ids for table in catalog.base_tables_of(catalog.views[id_])}
            anew = next((cast.recomputed[id_] for id_ in ids if id_ in cast.recomputed), None)
            way, why = self._weighed(group, executors, sum(there[t] for t in read) * row_bytes <= room_bytes, anew)
            for id_ in ids:
                own = cast.recomputed.get(id_, TOGETHER) if why in RECOMPUTED else why
                found[id_] = fixed_choice(prospects[id_], way, own, executors)
        return found

    def _by_policy(self, view: ViewDefinition, prospect: Prospect, executors: Executors) -> Choice:
        if view.policy == "FULL" and not prospect.changed_rows:
            return fixed_choice(prospect, INCREMENTAL, NO_CHANGES, executors)
        return fixed_choice(prospect, FULL if view.policy == "FULL" else INCREMENTAL, POLICY, executors)

    def _weighed(
        self, group: Sequence[Prospect], executors: Executors, fits: bool, anew: str | None
    ) -> tuple[Way, str]:
        quick = (is_quick(p.figures, executors.incremental, p.changed_rows, self.quick_seconds) for p in group)
        # Of small tables either way takes what epochs take whatever they hold.
        small = self.quick_seconds and all(max(p.changed_rows, p.base_rows) < ROWS_THAT_TELL for p in group)
        if small and anew is not None:
            # Unless nothing of it has changed.
            return (FULL, anew) if any(p.changed_rows for p in group) else (INCREMENTAL, NO_CHANGES)
        return (INCREMENTAL, FEW_CHANGES) if small or all(quick) else self.judge(group, executors, fits)

    def _with(
        self, base: ReadTransaction, catalog: Catalog, cast: _Cast, plan: EpochPlan, choices: Mapping[int, Choice]
    ) -> EpochPlan:
        recomputed = frozenset(id_ for id_, choice in choices.items() if choice.way == FULL)
        if not recomputed:
            return replace(plan, choices=choices)
        members, _ = self._mixed(catalog, cast, recomputed)
        tables = [members.tables[id_] for id_ in members.circuit.whole_tables]
        rows = sum(base.count(format_of(table).database) for table in tables)
        return replace(plan, members=members, base_rows=rows, choices=choices)

    def _mixed(
        self, catalog: Catalog, cast: _Cast, recomputed: frozenset[int]
    ) -> tuple[Members, Mapping[int, Concern]]:
        known = cast.mixed.get(recomputed)
        if known is None:
            if len(cast.mixed) >= _MIXED_KEPT:
                cast.mixed.clear()
            cadence = cast.members.cadence
            whole = tuple(view for view in cast.views if view.id in recomputed)
            others = tuple(view for view in cast.views if view.id not in recomputed)
            stepped = self._planner.compile(catalog, others, cadence) if others else None
            remade = self._planner.compile(catalog, whole, whole_namespace(cadence))
            mixed = mix(stepped, remade)
            concerns = {} if stepped is None else _concerns(stepped, 0, False)
            concerns |= _concerns(remade, len(mixed.circuit.nodes) - len(remade.circuit.nodes), True)
            known = cast.mixed[recomputed] = (replace(cast.members, mixed=mixed), concerns)
        return known

    # ---- after it ----

    def note(
        self, txn: WriteTransaction, plan: EpochPlan, result: EpochResult, publish_seconds: float, now_seconds: float
    ) -> None:
        """Write what an epoch took and how it was decided, of each view for which that was not too quick to matter.

        Args:
            txn: the transaction that publishes it.
            plan: the epoch.
            result: what its executor returned.
            publish_seconds: what publishing has taken.
            now_seconds: the moment, in seconds since 1970.
        """
        measured, cast = result.measured, self._casts.get(plan.members.cadence)
        if measured is None or cast is None or not plan.choices:
            return
        total = measured.run_seconds + measured.settle_seconds + publish_seconds
        if plan.members.mixed is None and total < self.quick_seconds and not self._measures_all:
            return
        concerns = self._concerns_of(cast, plan)
        seconds = seconds_of(concerns, measured, result.writes, publish_seconds)
        for view, concern in concerns.items():
            choice = plan.choices[view]
            is_plain = choice.way == INCREMENTAL and choice.why in _PLAIN
            if is_plain and seconds[view] < self.quick_seconds and not self._measures_all:
                continue
            known = read_figures(txn, view)
            rows = rows_of(concern, measured)
            figures = known.with_measured(choice.way, result.executor, rows, seconds[view])
            decision = Decision(
                view, figures.decided, plan.number, plan.to, choice, rows, seconds[view], result.executor, now_seconds
            )
            write_figures(txn, figures)
            write_decision(txn, decision)
            self._figures[view] = figures

    def _concerns_of(self, cast: _Cast, plan: EpochPlan) -> Mapping[int, Concern]:
        mixed = plan.members.mixed
        if mixed is not None:
            return cast.mixed[mixed.views][1]
        if cast.stepped is None:
            cast.stepped = _concerns(plan.members.compilation, 0, False)
        return cast.stepped


def _concerns(compilation: Compilation, first: int, is_recomputed: bool) -> dict[int, Concern]:
    """Return what in a compilation is each view's; its nodes are numbered from ``first`` on."""
    nodes = compilation.circuit.nodes
    found: dict[int, Concern] = {}
    for view in compilation.views:
        mine = compilation.nodes_of(view)
        states = frozenset(stored_name(state) for state in compilation.states_of(view))
        sources = frozenset(first + i for i in mine if isinstance(nodes[i].operator, Source))
        found[view] = Concern(frozenset(first + i for i in mine), states, sources, is_recomputed)
    return found


def _groups(compilation: Compilation, views: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """Return ``views`` in groups that keep no state together: each is decided for by itself."""
    groups: list[tuple[list[int], set[str]]] = []
    for view in views:
        states = set(compilation.states_of(view))
        together = [group for group in groups if group[1] & states]
        groups = [group for group in groups if not group[1] & states]
        ids = [id_ for group in together for id_ in group[0]]
        groups.append(([*ids, view], states.union(*(group[1] for group in together))))
    return tuple(tuple(sorted(ids)) for ids, _ in groups)
