"""Objects of further kinds on their way from a watch to the plugins that want them."""

import pytest

from berth.out_of_tree.cluster_state.watched_objects import (
    WatchedKind,
    WatchedObject,
    WatchedObjects,
    decode_object,
)
from berth.out_of_tree.connections.conditions import ConditionType
from berth.queue.requeueing.hints import build_hint_map
from berth.queue.requeueing.queue_profile import QueueProfile
from berth_plugin_proto import identity_pb2, queueing_pb2
from tests.failures.reporting import reports
from tests.unit.out_of_tree.scripted import NAME, PROFILE, Scripted, hosted, passing, rejected, until

GROUPS = WatchedKind("scheduling.x-k8s.io", "v1alpha1", "podgroups")


def interest(*kinds):
    """What a plugin says that wants nodes, and these kinds."""
    resources = [
        identity_pb2.WatchedResource(
            group=kind.group, version=kind.version, resource=kind.resource, label_selector=kind.label_selector
        )
        for kind in kinds
    ]
    return identity_pb2.StateInterest(nodes=True, resources=resources)


def group(name, data=b"{}"):
    return WatchedObject("team", name, data)


def nothing(_event, _old, _new):
    """No queue hears of what happened."""


class Watches:
    """Stands for the scheduler process: hands each kind's watch to the test."""

    def __init__(self, harness):
        self.handlers = {}
        self.stopped = []
        harness.watch = self.start

    def start(self, kind, handler):
        self.handlers[kind] = handler
        return lambda: self.stopped.append(kind)


def received(plugin):
    """What the plugin was sent of objects: their names, with a minus where they went."""
    batches = [
        getattr(request, body).changes
        for request in plugin.synced
        if (body := request.WhichOneof("body")) in {"chunk", "delta"}
    ]
    words = []
    for change in (change for batch in batches for change in batch):
        match change.WhichOneof("change"):
            case "object_upsert":
                words.append(f"{change.object_upsert.key.name} {change.object_upsert.object.decode()}")
            case "object_remove":
                words.append(f"- {change.object_remove.key.name}")
    return words


async def test_objects_reach_the_plugin():
    """A plugin is sent the kinds it wants, as they come, change and go, while nothing else happens."""
    plugin = Scripted(state=interest(GROUPS))
    async with hosted(plugin) as harness:
        watches = Watches(harness)
        await harness.up()
        handler = watches.handlers[GROUPS]
        handler.on_add(group("a"))
        handler.on_update(group("a"), group("a", b'{"x":1}'))
        handler.on_delete(group("a"))
        await until(lambda: len(received(plugin)) == 3)

    assert ["a {}", 'a {"x":1}', "- a"] == received(plugin)


async def test_a_late_plugin_gets_what_there_is():
    """The transfer to a plugin brings the objects that were there before it."""
    plugin = Scripted(state=interest(GROUPS))
    async with hosted(plugin) as harness:
        harness.watch = lambda _kind, handler: handler.on_add(group("a"))
        await harness.up()
        await until(lambda: received(plugin))

    assert ["a {}"] == received(plugin)


async def test_generations_count_both():
    """Steps of objects and steps of nodes make one line of generations, and calls name the newest."""

    async def reply(request, _context):
        return passing(request)

    plugin = Scripted(state=interest(GROUPS))
    plugin.replies["FilterScore"] = reply
    async with hosted(plugin) as harness:
        watches = Watches(harness)
        await harness.up()
        watches.handlers[GROUPS].on_add(group("a"))
        harness.add_nodes("n3")
        watches.handlers[GROUPS].on_add(group("b"))
        await harness.filter()
        [request] = plugin.requests("FilterScore")

    deltas = list(request.call.deltas)
    assert [delta.base_generation + 1 for delta in deltas] == [delta.generation for delta in deltas]
    assert deltas[-1].generation == request.call.generation


def test_a_plugin_that_changed_its_mind():
    """A follower that leaves a kind gets no more of it, and a kind is watched once for all."""
    heard, started = [], []
    objects = WatchedObjects(lambda kind, handler: started.append((kind, handler)), nothing)

    class Follower:
        def take(self, change):
            heard.append(change.object_upsert.key.name)

    wanted, one, other = interest(GROUPS).resources, Follower(), Follower()
    objects.follow(one, wanted)
    objects.follow(other, wanted)
    [(_, handler)] = started
    handler.on_add(group("a"))
    objects.forget(one)
    handler.on_add(group("b"))

    assert ["a", "a", "b"] == heard


def test_the_last_follower_ends_the_watch():
    """A kind that no plugin wants any more is not watched, and its objects are forgotten."""
    stopped = []
    objects = WatchedObjects(lambda kind, _handler: lambda: stopped.append(kind), nothing)
    wanted, follower = interest(GROUPS).resources, object()
    objects.follow(follower, wanted)
    objects.forget(follower)

    assert ([GROUPS], []) == (stopped, list(objects.upserts(wanted)))


def test_wishes_that_change_every_time():
    """A plugin that wants another kind after each connection leaves no watch behind."""
    watched = set()

    def start(kind, _handler):
        watched.add(kind)
        return lambda: watched.discard(kind)

    objects, follower = WatchedObjects(start, nothing), object()
    for i in range(100):
        objects.follow(follower, interest(WatchedKind("example.com", "v1", f"kind{i}")).resources)

    assert {WatchedKind("example.com", "v1", "kind99")} == watched


@reports("kind-not-listed", condition="`KindsListed` of the plugin, which is ready without it")
async def test_a_kind_that_is_not_listed():
    """A kind that the API server does not have is a condition of the plugin, which is ready without it."""
    plugin = Scripted(state=interest(GROUPS))
    async with hosted(plugin) as harness:
        watches = Watches(harness)
        await harness.up()
        conditions = harness.connection.conditions
        watches.handlers[GROUPS].on_overdue("podgroups not listed")
        assert harness.connection.ready
        assert ["KindsListed"] == [each.kind.value for each in conditions if not each.holds]

        watches.handlers[GROUPS].on_synced()
        assert conditions.holds(ConditionType.KINDS_LISTED)


def test_bytes_are_kept_as_they_are():
    """An object is known by its name, and its bytes are the API server's."""
    data = b'{"metadata": {"name": "a", "namespace": "team"}, "spec": {"minMember": 3}}'

    assert WatchedObject("team", "a", data) == decode_object(memoryview(data))


@pytest.mark.parametrize("data", [b"[]", b"{}", b'{"metadata": {}}'])
def test_what_has_no_name(data):
    """What has no name is no object."""
    with pytest.raises(ValueError, match=r"Object|Expected"):
        decode_object(data)


@pytest.mark.parametrize(
    ("name", "labels", "asks", "queued"),
    [
        pytest.param("mine", {}, False, ["p"], id="the pod's own group"),
        pytest.param("another", {}, False, [], id="another group"),
        pytest.param("mine", {}, True, ["p"], id="asked about"),
    ],
)
async def test_events_of_a_kind(name, labels, asks, queued):
    """A change of an object that a plugin waits for brings back the pods that it names, and no others."""
    declared = identity_pb2.EventInterest(
        resource=GROUPS.events,
        actions=[identity_pb2.ACTION_TYPE_UPDATE],
        pod_label_names_object="group",
        ask_hint=asks,
    )
    points = [identity_pb2.EXTENSION_POINT_FILTER, identity_pb2.EXTENSION_POINT_QUEUEING_HINTS]
    plugin = Scripted(*points, state=interest(GROUPS), events=[declared])
    plugin.replies["QueueingHints"] = queueing_pb2.QueueingHintsResponse(hints=[queueing_pb2.Hint(all=True)])
    async with hosted(plugin) as harness:
        watches = Watches(harness)
        await harness.up()
        harness.queue._strategies._profiles[PROFILE] = QueueProfile([], build_hint_map([harness.plugin]))
        rejected(harness.queue, harness.pod(labels={"group": "mine"}), NAME)
        old, new = (group(name, data)._replace(labels=labels) for data in (b'{"a": 1}', b'{"a": 2}'))
        watches.handlers[GROUPS].on_add(old)
        assert not harness.queue.sizes().active
        watches.handlers[GROUPS].on_update(old, new)
        await until(lambda: harness.queue.sizes().active == len(queued))

    asked = [
        (event.resource, event.new_object) for r in plugin.requests("QueueingHints") for event in r.events
    ]
    assert asked == ([(GROUPS.events, b'{"a": 2}')] if asks else [])
