"""Pods of one class share answers: what is known of it gives what asking about all nodes gives."""

import random
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

import msgspec
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from berth.cache.cache import Cache
from berth.config import load
from berth.cycle.schedule_pod import SchedulePod
from berth.evaluation import find_nodes
from berth.evaluation.caching import dirty_rows
from berth.evaluation.caching.cached_evaluation import CachedEvaluation
from berth.evaluation.caching.equivalence_cache import EquivalenceCache
from berth.evaluation.caching.remote_plugin import RemotePlugin
from berth.evaluation.find_nodes import NodeSearch, Rotation
from berth.evaluation.select_host import score_nodes
from berth.framework.attempts.attempt import Attempt
from berth.framework.attempts.cycle_record import CycleRecord
from berth.framework.attempts.cycle_state import CycleState
from berth.framework.attempts.diagnosis import FitError
from berth.framework.interface import NO_ROW_FORM
from berth.framework.mirrors.listers import Listers
from berth.framework.status import Status
from berth.objects.api_object import ObjectMeta
from berth.objects.taint import Toleration
from berth.objects.workloads import Service, ServiceSpec
from berth.plugins.registry import IN_TREE
from berth.profiles.profile_builder import build_frameworks
from berth.snapshot.columns.row_journal import RowJournal
from berth.snapshot.snapshot import Snapshot
from berth.testing.builders import make_node, make_pod
from berth.testing.handles import FixedNominator, make_handle
from berth.testing.strategies import LABELS, NAMESPACES, NODE_NAMES, clusters, nodes, pods
from tests.fakes import Rejects
from tests.suite import examples
from tests.unit.plugins.dynamic_resources.kit import claiming, device, make_claim, make_class, make_slice

PROFILES = load(None).profiles

ROW_BY_ROW, TOGETHER, WHOLE_TABLE = {"FEW": 32}, {"FEW": 0}, {"FEW": 0, "MANY": 0, "SHARE": 10_000}
"""Bounds for the ways to ask about dirty rows, in clusters of few rows."""


@contextmanager
def asked_in(way):
    """Dirty rows are asked about like that; None: as a table of their own."""
    with ExitStack() as stack:
        stack.enter_context(patch.multiple(dirty_rows, **(TOGETHER if way is None else way)))
        if way is None:
            stack.enter_context(without_forms())
        yield


@contextmanager
def without_forms():
    """No plugin has another form than the vector form for some rows."""
    with ExitStack() as stack:
        for kind in IN_TREE.values():
            for name in ("filter_by_row", "score_by_row"):
                if name in vars(kind):
                    make = getattr(kind, name)
                    stack.enter_context(patch.object(kind, name, with_one_row_alone(make)))
        yield


def with_one_row_alone(make):
    return lambda *asked: make(*asked)._replace(some=None)


class Dice:
    """Chance that remembers how many nodes it was asked to choose from."""

    def __init__(self):
        self._random = random.Random(7)
        self.ties = []

    def randrange(self, n):
        self.ties.append(n)
        return self._random.randrange(n)


class Side:
    """One of the two that decide on the same cluster, with plugins of its own."""

    def __init__(self, framework, snapshot, nominator, percentage=0, *, remembers):
        self.framework = framework
        # Making room is worked out from the same statuses; what it does is not what is compared here.
        self.framework.plugins.post_filter = []
        self.dice, self.memory = Dice(), EquivalenceCache(snapshot) if remembers else None
        self.search = NodeSearch(nominator, Rotation(), percentage)
        self.algorithm = SchedulePod(self.search, self.dice, self.memory)
        self._snapshot = snapshot

    async def decide(self, pod):
        """The node, everything that anybody can tell of the decision, and the state of the cycle."""
        attempt = self.attempt(pod)
        record, state = attempt.record, attempt.state
        decision = await self.algorithm.decide(self.framework, attempt)
        counts = record.node_count, record.feasible_count, record.evaluated_count, record.score
        described = (
            reported(decision.status),
            decision.nominating_info,
            counts,
            state.skip_filter,
            tuple(self.dice.ties),
        )
        return decision.node_name, (*described, self.search.rotation.start), state

    async def check_rebuilt(self, pod):
        """What is known of the pod's class is what asking about all rows gives."""
        attempt = self.attempt(pod)
        key, known = self.memory.lookup(self.framework, attempt)
        if key is None:
            return
        verdicts, scores = await self.worked_out(known, attempt)
        self.memory.store(key, known, reused=True)
        anew, rebuilt = await self.worked_out(CachedEvaluation(known.plugins), self.attempt(pod))

        assert anew == verdicts
        assert rebuilt == scores

    async def worked_out(self, answers, attempt):
        """Who turned each row down and why; each feasible row's total, and the rows of the highest."""
        search = NodeSearch(self.search.nominator, Rotation(), exhaustive=True)
        found = await search.find(self.framework, attempt, answers)
        if isinstance(found, Status):
            return reported(found), None
        statuses = found.diagnosis_builder.diagnosis().statuses()
        scores = await score_nodes(attempt, answers, found)
        ranked = dict(zip(scores.rows.tolist(), scores.totals.tolist(), strict=True))
        rows = [row for row, total in ranked.items() if total == max(ranked.values())]
        if found.matches_cache and answers.uncacheable is None:
            assert (max(ranked.values()), rows) == (
                answers.total_scores.best()[0],
                list(answers.total_scores.best()[1]),
            )
        answers.end(attempt)
        return statuses, ranked

    def attempt(self, pod):
        record, state = CycleRecord(pod, "", 1, b"", b"", 0, 0, 0), CycleState()
        state.write(CycleRecord, record)
        return Attempt(pod, self._snapshot, state, record)


def reported(status):
    error = status.error
    if not isinstance(error, FitError):
        return status.code, status.message
    diagnosis = error.diagnosis
    statuses = {row: (s.code, s.reasons, s.plugin) for row, s in diagnosis.statuses().items()}
    return status.message, statuses, diagnosis.unschedulable_plugins


class Comparison:
    """A cluster that changes, and two that decide on it."""

    def __init__(self, cluster, percentage=0, *, rebuilds=False):
        self.cache, self.snapshot, self.listers = Cache(), Snapshot(), Listers()
        self.nominator = FixedNominator()
        self.here = {node.name: node for node in cluster}
        for node in cluster:
            self.cache.add_node(node)
        self.fresh = self._side(percentage, remembers=False)
        self.remembering = self._side(percentage, remembers=True)
        self.placed = []
        self.count = 0
        self.rebuilds = rebuilds

    def _side(self, percentage, *, remembers):
        handle = make_handle(self.snapshot, listers=self.listers, nominator=self.nominator)
        framework = build_frameworks(PROFILES, IN_TREE, lambda _: handle)["default-scheduler"]
        return Side(framework, self.snapshot, self.nominator, percentage, remembers=remembers)

    async def schedule(self, template, nominated=""):
        """Decide on a pod like the template, with the one and the other; it goes where they say."""
        self.count += 1
        pod = renamed(template, f"pod-{self.count}")
        if nominated:
            status = msgspec.structs.replace(pod.status, nominated_node_name=nominated)
            pod = msgspec.structs.replace(pod, status=status)
        self.cache.update_snapshot(self.snapshot)
        name, expected, needed = await self.fresh.decide(pod)
        again, found, handed_over = await self.remembering.decide(pod)

        assert (name, expected) == (again, found)
        assert needed.written_since(0).keys() <= handed_over.written_since(0).keys()
        if not nominated and self.rebuilds:
            await self.remembering.check_rebuilt(pod)

        if name:
            placed = pod.placed_on(name)
            self.cache.assume_pod(placed)
            self.placed.append(placed)

    def leave(self, number):
        if self.placed:
            self.cache.remove_pod(self.placed.pop(number % len(self.placed)))

    def report(self, number):
        """A binding is observed, or a kubelet says that a pod runs."""
        if not self.placed:
            return
        number %= len(self.placed)
        old = self.placed[number]
        status = msgspec.structs.replace(old.status, phase="Running")
        new = self.placed[number] = msgspec.structs.replace(old, status=status)
        if self.cache.is_assumed(old.uid):
            self.cache.add_pod(new)
        else:
            self.cache.update_pod(old, new)

    def change(self, node):
        known = self.here.get(node.name)
        self.here[node.name] = node
        if known is None:
            self.cache.add_node(node)
        else:
            self.cache.update_node(known, node)

    def drop(self, name):
        if name in self.here:
            self.cache.remove_node(self.here.pop(name))

    def nominate(self, pod, name):
        self.nominator.by_node[name] = [pod]

    def serve(self, service):
        self.listers.services.put(service)


def renamed(pod, name):
    metadata = msgspec.structs.replace(pod.metadata, name=name, uid=name)
    return msgspec.structs.replace(pod, metadata=metadata)


def services():
    return st.builds(
        lambda namespace, selector: Service(
            metadata=ObjectMeta(name="s", namespace=namespace), spec=ServiceSpec(selector=selector)
        ),
        st.sampled_from(NAMESPACES),
        st.sampled_from((None, *LABELS)),
    )


def steps():
    """Mostly pods, several alike in a row; between them what happens to a cluster."""
    series = st.tuples(st.just("schedule"), st.integers(0, 2), st.integers(1, 5))
    return st.one_of(
        series,
        series,
        st.tuples(st.just("nominated"), st.integers(0, 2), st.sampled_from(NODE_NAMES)),
        st.tuples(st.just("leave"), st.integers(0, 9)),
        st.tuples(st.just("report"), st.integers(0, 9)),
        st.tuples(st.just("change"), st.sampled_from(NODE_NAMES).flatmap(nodes)),
        st.tuples(st.just("drop"), st.sampled_from(NODE_NAMES)),
        st.tuples(st.just("nominate"), pods(), st.sampled_from(NODE_NAMES)),
        st.tuples(st.just("serve"), services()),
    )


def willing(pod):
    """The same pod, going to any node that has room for it."""
    affinity = pod.spec.affinity and msgspec.structs.replace(pod.spec.affinity, node_affinity=None)
    spec = msgspec.structs.replace(
        pod.spec, affinity=affinity, node_selector=None, tolerations=(Toleration("", "Exists"),)
    )
    return pod.with_spec(spec)


@settings(max_examples=examples(150), deadline=None)
@given(
    cluster=clusters(),
    templates=st.lists(pods().flatmap(lambda p: st.sampled_from((p, willing(p)))), min_size=3, max_size=3),
    happens=st.lists(steps(), min_size=4, max_size=16),
    percentage=st.sampled_from((0, 0, 40)),
    way=st.sampled_from((ROW_BY_ROW, TOGETHER, WHOLE_TABLE, None)),
)
async def test_remembered_as_from_nothing(cluster, templates, happens, percentage, way):
    """Whatever happens between pods, each gets the decision that it gets where nothing is known of its class.

    And what is known then is what asking about all rows gives: reasons, totals and the best rows. Rows that
    changed are asked about one by one, together, as a table of their own, or with all others.
    """
    with patch.object(find_nodes, "MIN_FEASIBLE_NODES", 1), asked_in(way):
        comparison = Comparison(cluster, percentage, rebuilds=True)
        for what, *how in happens:
            if what == "schedule":
                for _ in range(how[1]):
                    await comparison.schedule(templates[how[0]])
            elif what == "nominated":
                await comparison.schedule(templates[how[0]], how[1])
            else:
                getattr(comparison, what)(*how)


def roomy(*names):
    return [make_node(name, allocatable={"cpu": "64", "memory": "64Gi", "pods": "110"}) for name in names]


async def test_equal_pods_are_not_worked_out_again():
    """What is remembered of the second decides on the third; a pod like no other leaves nothing."""
    comparison = Comparison(roomy("n0", "n1", "n2"))
    await comparison.schedule(make_pod("p"))

    assert 0 == comparison.remembering.memory.size_bytes

    for _ in range(4):
        await comparison.schedule(make_pod("p"))

    assert {"new": 1, "first": 1, "reused": 3} == comparison.remembering.memory.outcomes


async def test_default_constraints_do_not_switch_it_off():
    """Pods of a service, which the built-in constraints spread, are one question, too."""
    comparison = Comparison(roomy("n0", "n1", "n2"))
    comparison.serve(
        Service(metadata=ObjectMeta(name="s", namespace="default"), spec=ServiceSpec({"zone": "a"}))
    )
    for _ in range(5):
        await comparison.schedule(make_pod("p", labels={"zone": "a"}))

    assert {"new": 1, "first": 1, "reused": 3} == comparison.remembering.memory.outcomes


async def test_a_pod_with_a_nomination_is_of_the_class_of_others():
    """Its own node is looked at alone first; what is known serves where that does not fit."""
    comparison = Comparison(roomy("n0", "n1"))
    pod = make_pod("p")
    for status in (pod.status, msgspec.structs.replace(pod.status, nominated_node_name="n1")):
        await comparison.schedule(msgspec.structs.replace(pod, status=status))

    assert {"new": 1, "first": 1} == comparison.remembering.memory.outcomes


async def test_memory_is_bounded():
    """Questions asked longest ago are forgotten as soon as all of them take too much memory."""
    comparison = Comparison(roomy("n0", "n1", "n2"))
    memory = comparison.remembering.memory
    for _ in range(2):
        await comparison.schedule(make_pod("p"))
    of_one = memory.size_bytes
    comparison.remembering.algorithm = SchedulePod(
        comparison.remembering.search,
        comparison.remembering.dice,
        memory := EquivalenceCache(comparison.snapshot, 3 * of_one),
    )
    for number in (0, 1, 2, 3, 0, 1, 2, 3, 0, 3):
        await comparison.schedule(make_pod("p", labels={"app": str(number)}))

    assert memory.size_bytes == 3 * of_one
    assert {"new": 4, "first": 4, "full": 1, "reused": 1} == memory.outcomes


async def test_more_classes_in_turn_than_fit_do_not_drive_each_other_out():
    """Those that are kept serve in every round; the others come in once one of these is asked for no more."""
    comparison = Comparison(roomy("n0", "n1", "n2"))
    memory = comparison.remembering.memory
    for _ in range(2):
        await comparison.schedule(make_pod("p"))
    memory = EquivalenceCache(comparison.snapshot, 3 * memory.size_bytes)
    comparison.remembering.algorithm = SchedulePod(
        comparison.remembering.search, comparison.remembering.dice, memory
    )
    for number in (0, 1, 2, 3) * 4:
        await comparison.schedule(make_pod("p", labels={"app": str(number)}))

    assert {"new": 4, "first": 3, "full": 3, "reused": 6} == memory.outcomes

    for number in (1, 2, 3) * 2:
        await comparison.schedule(make_pod("p", labels={"app": str(number)}))

    assert {"new": 4, "first": 4, "full": 3, "reused": 11} == memory.outcomes


async def test_a_profile_that_runs_other_plugins_begins_anew():
    """What is remembered is of the plugins that answered; a plugin that is attached has its say at once."""
    comparison = Comparison(roomy("n0", "n1", "n2"))
    for _ in range(2):
        await comparison.schedule(make_pod("p"))
    for side in (comparison.fresh, comparison.remembering):
        plugins = side.framework.plugins
        side.framework.take(replace(plugins, filter=[*plugins.filter, Rejects("F", ["n0", "n2"])]))
    await comparison.schedule(make_pod("p"))

    assert {"new": 1, "first": 1, "unsigned": 1} == comparison.remembering.memory.outcomes
    assert "n1" == comparison.placed[-1].node_name


def crowded(n):
    """Nodes that hold one pod each, and a pod that fits on none of them any more."""
    small = {"cpu": "1", "memory": "1Gi", "pods": "110"}
    comparison = Comparison([make_node(f"n{i}", allocatable=small) for i in range(n)])
    for i in range(n):
        comparison.cache.add_pod(make_pod(f"there-{i}", requests={"cpu": "1"}).placed_on(f"n{i}"))
    return comparison, make_pod("p", requests={"cpu": "1"})


async def test_a_pod_that_fits_nowhere_is_one_of_its_class():
    """Nodes are not asked about again for pods that wait; the reasons are still given."""
    comparison, pod = crowded(3)
    for _ in range(4):
        await comparison.schedule(pod)

    assert {"new": 1, "first": 1, "reused": 2} == comparison.remembering.memory.outcomes


async def test_answers_that_cannot_be_brought_up_to_date_are_begun_anew():
    """A plugin that raises about a row that changed is asked about all rows, and its error is the cycle's."""
    comparison = Comparison(roomy("n0", "n1", "n2"))
    for _ in range(3):
        await comparison.schedule(make_pod("p"))
    (fit,) = (p for p in comparison.remembering.framework.plugins.filter if p.name == "NodeResourcesFit")
    failing = patch.object(type(fit), "filter", side_effect=ValueError("boom"))
    (known,) = comparison.remembering.memory._entries.newest(1)
    known._filter_results._names = None
    comparison.cache.update_snapshot(comparison.snapshot)
    with failing, patch.object(type(fit), "filter_by_row", return_value=NO_ROW_FORM):
        decision = await comparison.remembering.algorithm.decide(
            comparison.remembering.framework, comparison.remembering.attempt(make_pod("q"))
        )

    assert 'running "NodeResourcesFit" filter plugin: boom' == decision.status.message
    assert 1 == comparison.remembering.memory.outcomes["outdated"]
    assert 0 == comparison.remembering.memory.size_bytes


async def test_pods_with_claims_are_of_one_class():
    """Of devices alone each is asked anew; one that PreFilter rejects costs the class nothing."""
    comparison = Comparison(roomy("n0", "n1", "n2"))
    comparison.listers.device_classes.put(make_class())
    comparison.listers.resource_slices.put(make_slice("s0", [device("d0")], node="n1"))
    comparison.listers.resource_claims.put(make_claim("there"))
    for name in ("there", "there", "there", "missing", "there"):
        await comparison.schedule(claiming(name))

    assert {"new": 1, "first": 1, "reused": 3} == comparison.remembering.memory.outcomes
    assert ["n1"] * 4 == [pod.node_name for pod in comparison.placed]


class Restarts(RemotePlugin):
    """A sidecar that is replaced when it is asked about another table than the snapshot."""

    name = "Restarts"
    touched = RowJournal()
    ask = score = normalize_score = None

    def __init__(self, snapshot):
        self.snapshot, self.starts = snapshot, 1

    def sign_pod(self, _pod):
        return ()

    def shared_cache_key(self, _nodes):
        return self.starts

    def cache_key(self, _state, _pod, _nodes):
        return self.starts

    def answers(self, _state, _part):
        return False

    def columns(self, _state, _pod):
        raise AssertionError("it gives no answers that are kept")

    def filter(self, _state, _pod, nodes):
        self.starts += nodes is not self.snapshot
        return np.zeros(len(nodes), dtype=np.uint8)


async def test_a_sidecar_that_was_replaced_meanwhile_is_asked_anew():
    """While others' nominations are looked at, what was known of the class may become of no use."""
    comparison = Comparison(roomy("n0", "n1", "n2"))
    side = comparison.remembering
    plugins = side.framework.plugins
    side.framework.take(
        replace(plugins, filter=[*plugins.filter, Restarts(comparison.snapshot)], post_filter=[])
    )
    comparison.cache.update_snapshot(comparison.snapshot)
    for name in ("a", "b", "c"):
        await side.decide(renamed(make_pod("p"), name))
    before = side.memory.outcomes["outdated"]
    comparison.nominate(make_pod("promised", priority=10), "n1")
    await side.decide(renamed(make_pod("p"), "d"))

    assert (0, 1) == (before, side.memory.outcomes["outdated"])
