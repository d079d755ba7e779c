"""Objects that cannot be taken in end nothing: they are set aside, and all others go on."""

import copy
import json
import logging
from contextlib import suppress

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.cache.cache import Cache
from berth.client import resources
from berth.client.errors import RelistError
from berth.client.legible import legible
from berth.client.watching.quarantined_objects import LONGEST_SHOWN, NotTaken
from berth.client.watching.reflector import Reflector
from berth.client.watching.watch import WatchSource
from berth.client.wire import Meta, decode_head, decode_page, decode_watch_event, encode
from berth.event_handlers.nodes import NodeHandler
from berth.event_handlers.pods import PodHandler
from berth.event_handlers.resources import resource_handler
from berth.framework.cluster_event import ActionType
from berth.framework.mirrors.listers import Listers, Store
from berth.objects.decode import decoder
from berth.objects.node import Node
from berth.objects.pods.pod_decoding import decode_pod
from berth.objects.quantity import MAX_INT64
from berth.scheduler.pages.cache_debugger import SUMS
from berth.scheduler.watching.watches import FATAL, LOOKED_UP
from berth.scheduler.writing.set_aside_events import (
    BURST,
    SECONDS_FOR_EVENT,
    SetAsideEvents,
    set_aside_now,
    set_aside_total,
)
from berth.snapshot.pod_group_states import PodGroupStates
from berth.snapshot.snapshot import Snapshot
from berth.telemetry.metrics.registry import SchedulerMetrics
from berth.testing.handles import ManualClock
from tests.failures.reporting import reports
from tests.hostile.work import growth
from tests.suite import examples
from tests.unit.scheduler.test_devices_end_to_end import claim, device_class, slice_of, stored
from tests.unit.scheduler.test_devices_end_to_end import places as places_of
from tests.unit.scheduler.test_devices_end_to_end import pod as pod_document
from tests.unit.scheduler_at_work import eventually, scheduling
from tests.unit.scheduler_at_work import node as node_document

PROFILE = "default-scheduler"
HUGE = "9" * 5_000


def line(kind, document):
    return json.dumps({"type": kind, "object": document}).encode()


class Failing:
    """An object of which the n-th call of any method fails; `None` never."""

    def __init__(self, inner, plan):
        self._inner, self._plan = inner, plan

    def __getattr__(self, name):
        member = getattr(self._inner, name)
        if not callable(member) or name.startswith("is_"):
            return member

        def call(*arguments, **keywords):
            self._plan.step(name)
            return member(*arguments, **keywords)

        return call


class Plan:
    """Which call is to fail."""

    def __init__(self):
        self.calls, self.fails_at = 0, None

    def step(self, name):
        self.calls += 1
        if self.calls == self.fails_at:
            raise RuntimeError(f"injected into {name}")


class Queue:
    """A queue that knows which pods it has, none of them in a group that is queued."""

    def __init__(self):
        self.pods, self.groups = {}, None

    def add(self, pod):
        self.pods[pod.uid] = pod

    def update(self, old, new):
        del old
        self.pods[new.uid] = new

    def delete(self, pod):
        self.pods.pop(pod.uid, None)

    def move_all(self, event, old, new, predicate=None):
        del event, old, new, predicate


class Scene:
    """Mirrors of nodes and pods into a real cache, fed with lines of a watch."""

    def __init__(self):
        self.plan = Plan()
        self.cache, self.queue, self.unassigned = Cache(PodGroupStates()), Queue(), Store()
        queue, cache = Failing(self.queue, self.plan), Failing(self.cache, self.plan)
        unassigned = Failing(self.unassigned, self.plan)
        clock = ManualClock()
        pods = PodHandler(
            queue,
            cache,
            unassigned=unassigned,
            profiles={PROFILE},
            waiting_pods={},
            clock=clock,
            gang_scheduling=True,
        )
        nodes = NodeHandler(queue, cache, clock=clock)
        self.nodes = Reflector(None, WatchSource(resources.NODES), decoder(Node), nodes, fatal=FATAL)
        self.pods = Reflector(None, WatchSource(resources.PODS), decode_pod, pods, fatal=FATAL)
        self.snapshot = Snapshot()

    def tell(self, kind, document):
        mirror = self.nodes if document.get("kind") == "Node" else self.pods
        mirror._take_line(line(kind, document))

    def differences(self):
        """Where the cache is another than one made of what the mirrors hold."""
        self.cache.update_snapshot(self.snapshot)
        rebuilt = Cache(PodGroupStates())
        for node in self.nodes.objects():
            rebuilt.add_node(node)
        waiting = set()
        for pod in self.pods.objects():
            if pod.node_name:
                rebuilt.add_pod(pod)
            elif pod.spec.scheduler_name == PROFILE:
                rebuilt.pod_groups.add(pod)
                waiting.add(pod.uid)
        if waiting != {pod.uid for pod in self.unassigned}:
            yield "waiting pods"
        if _groups(rebuilt) != _groups(self.cache):
            yield "groups"
        if _nodes(rebuilt) != _nodes(self.cache):
            yield f"nodes {_nodes(rebuilt)} {_nodes(self.cache)}"


def _groups(cache):
    return {key: cache.pod_groups.known(key).standing for key in cache.pod_groups}


def _nodes(cache):
    return {
        info.name: (*sorted(info.pods), *(_nonzero(info, name) for name in SUMS))
        for info in cache.node_infos()
    }


def _nonzero(info, name):
    value = getattr(info, name)
    return {k: v for k, v in value.items() if v} if isinstance(value, dict) else value


def a_node(version, cpu="4"):
    document = node_document("n1")
    document["metadata"] |= {"uid": "node-n1", "resourceVersion": str(version)}
    document["status"]["allocatable"] = {"cpu": cpu, "pods": "20"}
    return document


def a_pod(version, name="p", node="", cpu="1", **spec):
    document = pod_document(name, cpu=cpu)
    document["metadata"] |= {"uid": f"pod-{name}", "resourceVersion": str(version)}
    document["spec"] |= {"nodeName": node, "schedulerName": PROFILE, **spec}
    return document


GROUPED = {"schedulingGroup": {"podGroupName": "g"}}
STORY = [
    ("ADDED", a_node(1)),
    ("ADDED", a_pod(2, "q", **GROUPED)),
    ("ADDED", a_pod(3, "p", node="n1", **GROUPED)),
    ("MODIFIED", a_pod(4, "q", cpu="2", **GROUPED)),
    ("MODIFIED", a_node(5, cpu="8")),
    ("MODIFIED", a_pod(6, "p", node="n1", cpu="2", **GROUPED)),
    ("MODIFIED", a_pod(7, "q", node="n1", cpu="2", **GROUPED)),
    ("ADDED", a_pod(8, "r")),
    ("DELETED", a_pod(9, "r")),
    ("DELETED", a_pod(10, "q", node="n1", cpu="2", **GROUPED)),
    ("DELETED", a_node(11, cpu="8")),
    ("DELETED", a_pod(12, "p", node="n1", cpu="2", **GROUPED)),
]


def calls_of_story():
    scene = Scene()
    for kind, document in STORY:
        scene.tell(kind, document)
    return scene.plan.calls


@pytest.mark.parametrize("fails_at", range(1, calls_of_story() + 1))
def test_a_failure_at_any_call_of_a_handler_leaves_nothing_half_applied(fails_at):
    """After each event, the cache is what a rebuild makes of the versions that were taken in."""
    scene = Scene()
    scene.plan.fails_at = fails_at
    for kind, document in STORY:
        scene.tell(kind, document)
        assert not list(scene.differences())

    assert scene.pods.aside.total + scene.nodes.aside.total >= 1
    assert (0, 0) == (scene.cache.pod_count(), scene.cache.node_count())
    assert (0, 0) == (len(scene.pods.aside), len(scene.nodes.aside))


BAD = {"cpu": "one"}


def broken(document):
    document = copy.deepcopy(document)
    if document["kind"] == "Node":
        document["status"]["allocatable"] = BAD
    else:
        document["spec"]["containers"][0]["resources"] = {"requests": BAD}
    return document


@reports("object-set-aside", log="`object set aside, it cannot be taken in`, with the object and the cause")
def test_the_last_good_version_stays_counted_and_its_deletion_is_handled(caplog):
    scene = Scene()
    scene.tell("ADDED", a_node(1))
    scene.tell("ADDED", a_pod(2, node="n1", cpu="2"))
    scene.tell("MODIFIED", broken(a_pod(3, node="n1")))
    scene.tell("MODIFIED", broken(a_node(4)))

    info = scene.cache.node_info("n1")
    assert ({"cpu": 2000}, {"cpu": 4000}) == (info.requested, info.allocatable)
    assert (1, 1) == (len(scene.pods.aside), len(scene.nodes.aside))
    assert 2 == len(
        [
            r
            for r in caplog.records
            if r.message.startswith("object set aside, it cannot be taken in resource=")
        ]
    )
    assert all(record.exc_info for record in caplog.records)

    scene.tell("DELETED", broken(a_pod(5, node="n1")))
    scene.tell("DELETED", broken(a_node(6)))
    assert (0, 0) == (scene.cache.pod_count(), scene.cache.node_count())
    assert (0, 0) == (len(scene.pods.aside), len(scene.nodes.aside))


def test_a_version_is_tried_once_and_the_next_again():
    scene = Scene()
    scene.tell("ADDED", a_node(1))
    raw = json.dumps(broken(a_pod(2, node="n1"))).encode()
    for _ in range(3):
        scene.pods._take_listed(raw, {})
    assert (1, 1) == (scene.pods.aside.total, len(scene.pods.aside))

    scene.tell("MODIFIED", a_pod(3, node="n1"))
    assert (1, 0) == (scene.pods.aside.total, len(scene.pods.aside))
    assert 1 == scene.cache.pod_count()


def test_an_object_that_was_never_taken_in_is_forgotten_with_its_deletion():
    scene = Scene()
    scene.tell("ADDED", broken(a_pod(2, node="n1")))
    assert 1 == len(scene.pods.aside)

    scene.tell("DELETED", broken(a_pod(3, node="n1")))
    assert 0 == len(scene.pods.aside)
    assert not list(scene.differences())


def test_a_name_of_a_megabyte_is_no_megabyte_in_the_log(caplog):
    scene = Scene()
    with caplog.at_level(logging.ERROR):
        scene.tell("ADDED", a_pod(2, name="x" * 2**20))
        scene.tell("ADDED", a_pod(2, node="n1", cpu="9" * 2**20 + "x"))

    assert 2 == scene.pods.aside.total
    assert all(len(record.getMessage()) < 3 * LONGEST_SHOWN for record in caplog.records)


# What decoding may cost.

DEEP = b"[" * 100_000 + b"]" * 100_000


def test_a_document_of_any_depth_is_read():
    deep = b'{"metadata":{"name":"c"},"spec":{"x":' + DEEP + b',"y":"]]}"}}'

    assert decode_head(deep).metadata.name == "c"
    assert decode_watch_event(b'{"type":"ADDED","object":' + deep + b"}").type == "ADDED"
    assert 2 == len(decode_page(b'{"items":[' + deep + b',{"metadata":{}}]}').items)


@given(
    st.recursive(
        st.none() | st.integers() | st.text('a[]{}"\\\n', max_size=8),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.text('k"[', max_size=3), inner, max_size=3)
        ),
    )
)
def test_a_document_that_every_decoder_reads_stays_as_it_is(document):
    text = json.dumps(document).encode()

    assert text == legible(text)


def test_making_a_document_legible_takes_time_linear_in_the_length():
    assert growth(lambda n: lambda: legible(b'["a",' * n + b"1" + b"]" * n), 2_000) < 1.1


@pytest.mark.parametrize("levels", [64, 65, 2_000, 100_000])
def test_what_is_nested_deeply_is_written_as_it_was_read(levels):
    """A claim's parameters go into its allocation, where its driver reads them."""
    deep = b'{"a":["]",' * (levels // 2) + b"150" + b"]}" * (levels // 2)
    read = msgspec.json.decode(legible(b'{"parameters":[' + deep + b',{"b":' + deep + b"}]}"))

    assert b'{"p":[' + deep + b',{"b":' + deep + b"}]}" == encode({"p": read["parameters"]})


def test_a_claim_with_deep_parameters_is_taken_in():
    """The API server keeps opaque parameters of 10 KiB: 5,000 levels."""
    document = json.dumps(claim("c", "a100"))[:-1] + ',"extra":' + "[" * 5_000 + "]" * 5_000 + "}"
    reported = []
    store = Store()
    mirror = Reflector(
        None,
        WatchSource(resources.RESOURCE_CLAIMS),
        decoder(next(w.kind for w in LOOKED_UP if w.resource == resources.RESOURCE_CLAIMS)),
        resource_handler("", store, Queue(), {}, clock=ManualClock()),
    )
    mirror._take_line(b'{"type":"ADDED","object":' + document.encode() + b"}")
    reported += [obj.name for obj in store]

    assert ["c"] == reported
    assert 0 == mirror.aside.total


# Any object.

VALID = {
    "pods": a_pod(1, node="n1")
    | {
        "status": {
            "phase": "Running",
            "startTime": "2026-01-01T00:00:00Z",
            "containerStatuses": [{"name": "m"}],
        }
    },
    "nodes": a_node(1) | {"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}], "unschedulable": True}},
    "resourceslices": slice_of("n1", "a100"),
    "deviceclasses": device_class(),
    "resourceclaims": claim("c", "a100") | {"status": {"allocation": {"devices": {"results": []}}}},
    "persistentvolumes": {
        "metadata": {"name": "v"},
        "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["x"]},
    },
    "persistentvolumeclaims": {
        "metadata": {"name": "v", "namespace": "d"},
        "spec": {"resources": {"requests": {"storage": "1Gi"}}},
    },
    "csinodes": {
        "metadata": {"name": "n"},
        "spec": {"drivers": [{"name": "d", "allocatable": {"count": 3}}]},
    },
    "csistoragecapacities": {
        "metadata": {"name": "n", "namespace": "d"},
        "capacity": "1Gi",
        "storageClassName": "s",
    },
    "poddisruptionbudgets": {
        "metadata": {"name": "n", "namespace": "d"},
        "status": {"disruptionsAllowed": 1},
    },
    "services": {"metadata": {"name": "n", "namespace": "d"}, "spec": {"selector": {"a": "b"}}},
    "storageclasses": {"metadata": {"name": "n"}, "provisioner": "p", "allowedTopologies": []},
}
HOSTILE = st.one_of(
    st.sampled_from(
        [
            *(
                None,
                True,
                -1,
                2**31,
                2**63,
                -(2**63) - 1,
                10**400,
                1e308,
                "",
                "0",
                "-1",
                "\u0000",
                "\ud83d\ude00",
            ),
            *(
                "9" * 5_000,
                "9" * 5_000 + "Ei",
                "1e99999999999",
                "0000-00-00T00:00:00Z",
                "9999-12-31T23:59:59Z",
            ),
            *("0001-01-01T00:00:00+14:00", "x" * 2_000, [], {}, [None], {"": ""}, {"cpu": "9" * 5_000}),
        ]
    ),
    st.text(max_size=8),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=2),
)


def places(document, path=()):
    yield path
    if isinstance(document, dict):
        for key, value in document.items():
            yield from places(value, (*path, key))
    elif isinstance(document, list):
        for index, value in enumerate(document):
            yield from places(value, (*path, index))


@st.composite
def mutated(draw):
    plural = draw(st.sampled_from(sorted(VALID)))
    document = copy.deepcopy(VALID[plural])
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from([path for path in places(document) if path]))
        inner = document
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = copy.deepcopy(draw(HOSTILE))
    return plural, document


def at_version(document, version):
    """The document as an API server would write it: with a UID of its own, and another version each time."""
    metadata = document.get("metadata")
    if not isinstance(metadata, dict):
        return document
    names = [metadata.get(key, "") for key in ("namespace", "name", "uid", "resourceVersion")]
    if not all(isinstance(name, str) for name in names):
        return document
    stamp = {"uid": "/".join(names[:3]), "resourceVersion": f"{version}{names[3]}"}
    return document | {"metadata": metadata | stamp}


class AnyKind:
    """Mirrors of every watched kind, into real stores and a real cache."""

    def __init__(self):
        scene = Scene()
        self.scene, self.listers = scene, Listers()
        self.mirrors = {"nodes": scene.nodes, "pods": scene.pods}
        for watched in LOOKED_UP:
            wanted = {watched.events: ActionType.ALL}
            handler = resource_handler(
                watched.events, watched.store(self.listers), scene.queue, wanted, clock=ManualClock()
            )
            source = WatchSource(watched.resource)
            self.mirrors[watched.resource.plural] = Reflector(None, source, decoder(watched.kind), handler)

    def sizes(self):
        return [len(watched.store(self.listers)) for watched in LOOKED_UP]


def stays_on_its_node(case):
    """Whether a pod's document names the node that its valid form names, as the API server sees to.

    One that went to another node ends the process, as upstream's (pkg/scheduler/backend/cache/cache.go,
    v1.36).
    """
    plural, document = case
    spec = document.get("spec") or {}
    if plural != "pods" or not isinstance(spec, dict):
        return True
    node = spec.get("nodeName") or ""
    return node == VALID["pods"]["spec"]["nodeName"] or not isinstance(node, str)


@given(mutated().filter(stays_on_its_node))
@settings(max_examples=examples(300), deadline=None)
def test_any_object_ends_nothing_and_leaves_nothing(case):
    """Added, changed and deleted with hostile values; afterwards all is as if it had never been there."""
    plural, document = case
    any_kind = AnyKind()
    mirror, good = any_kind.mirrors[plural], VALID[plural]
    for name, valid in VALID.items():
        if name != plural:
            any_kind.mirrors[name]._take_line(line("ADDED", valid))
    before = any_kind.sizes()
    story = (("ADDED", document), ("MODIFIED", good), ("MODIFIED", document), ("DELETED", document))
    for version, (kind, reported) in enumerate((*story, ("ADDED", good), ("DELETED", good))):
        with suppress(RelistError):  # It cannot be read which object it is: a list follows.
            mirror._take_line(line(kind, at_version(reported, version)))
        any_kind.scene.cache.update_snapshot(any_kind.scene.snapshot)
        assert not list(any_kind.scene.differences())
    for key in list(mirror._known):
        mirror._drop(key, mirror._known[key].obj)

    assert before == any_kind.sizes()
    assert 0 == len(mirror)


# What users see of it.


class Written:
    def __init__(self):
        self.events = []

    def event(self, regarding, related=None, **fields):
        del related
        self.events.append((regarding.kind, regarding.name, fields["type"], fields["reason"], fields["note"]))


@reports("object-set-aside", event="`NotTakenIn` of the object, with the cause")
def test_an_event_says_why_at_a_bounded_rate():
    clock, written = ManualClock(), Written()
    events = SetAsideEvents(written, "default-scheduler", clock)
    for number in range(3 * BURST):
        events.report(NotTaken(resources.PODS, Meta(name=f"p{number}", namespace="d"), "no quantity"))

    assert BURST == len(written.events)
    note = "This version of the object cannot be taken in: no quantity"
    assert written.events[0] == ("Pod", "p0", "Warning", "NotTakenIn", note)
    clock.seconds += 2 * SECONDS_FOR_EVENT
    for number in range(3 * BURST):
        events.report(NotTaken(resources.NODES, Meta(name=f"n{number}"), "no quantity"))
    assert BURST + 2 == len(written.events)


@reports("object-set-aside", metric="`berth_objects_set_aside_total`, `berth_objects_set_aside_now`")
def test_two_metrics_say_how_many_were_and_are_set_aside():
    scene = Scene()
    scene.tell("ADDED", broken(a_pod(2, node="n1")))
    scene.tell("MODIFIED", broken(a_pod(3, node="n1")))
    mirrors = (scene.nodes, scene.pods)

    assert {"nodes": 0, "pods": 2} == set_aside_total(mirrors)
    assert {"nodes": 0, "pods": 1} == set_aside_now(mirrors)
    metrics = SchedulerMetrics()
    metrics.watch_set_aside(lambda: set_aside_total(mirrors), lambda: set_aside_now(mirrors))
    assert b'berth_objects_set_aside_total{resource="pods"} 2.0' in metrics.text()
    assert b'berth_objects_set_aside_now{resource="pods"} 1.0' in metrics.text()


# The whole scheduler.


def hostile_claim(name):
    document = claim(name, "")
    pattern = f'"{"a" * 42}!".matches("^(a+)+$")'
    document["spec"]["devices"]["requests"][0]["exactly"]["selectors"] = [{"cel": {"expression": pattern}}]
    return document


async def test_a_scheduler_at_work_goes_on_and_stops_when_it_is_asked_to(tmp_path):
    """An amount of 5,000 digits on a node, a pattern that backtracks, a selector without end."""
    endless = claim("endless", "")
    selector = "true"
    for level in range(4):
        selector = f"[{','.join('0123456789' * 5)}].all(x{level}, {selector})"
    endless["spec"]["devices"]["requests"][0]["exactly"]["selectors"] = [{"cel": {"expression": selector}}]
    large = node_document("large")
    large["status"]["allocatable"] = large["status"]["capacity"] = {
        "cpu": HUGE,
        "pods": HUGE,
        "memory": "1Gi",
    }
    placed = pod_document("placed", cpu=HUGE)
    placed["spec"]["nodeName"] = "n0"
    objects = [node_document("n0"), node_document("n1"), large, device_class(), slice_of("n1", "a")]
    claims = [hostile_claim("frozen"), endless]
    async with scheduling(tmp_path / "kubeconfig", *objects, *claims) as (sandbox, core):
        sandbox.load([placed, pod_document("f", "frozen"), pod_document("e", "endless")])
        for number in range(5):
            sandbox.load([pod_document(f"p{number}", cpu="1")])
        wanted = {f"p{number}" for number in range(5)}
        await eventually(lambda: wanted <= places_of(sandbox).keys())
        await eventually(lambda: "conditions" in stored(sandbox, "pods")["e"]["status"])
        await eventually(lambda: "conditions" in stored(sandbox, "pods")["f"]["status"])

        assert core.cache.node_info("n0").requested["cpu"] == MAX_INT64
        assert "n0" not in {place for name, place in places_of(sandbox).items() if name != "placed"}
        (condition,) = stored(sandbox, "pods")["e"]["status"]["conditions"]
        # Which bound ends it first, that of the selector or that of the cycle, is a question of the CPU.
        bounds = ("actual cost limit exceeded", "timed out trying to allocate devices")
        assert condition["message"].endswith(bounds)
