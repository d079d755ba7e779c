"""Handshake: what a plugin says of itself makes sense."""

import re
from collections.abc import Iterable
from itertools import islice

import msgspec

from berth.conformance.check import check, expect
from berth.conformance.subject import PluginUnderTest, brief
from berth.objects.label_selector import InvalidSelectorError
from berth.out_of_tree.connections.event_interest import parse_selector
from berth.out_of_tree.handshake_validation import problems_of
from berth_plugin_proto import identity_pb2

CLAUSE = "Order of calls"
DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
POINTER = re.compile(r"(/([^~/]|~[01])*)*")
KIND = re.compile(r"Node|Pod|[a-z0-9-]+\.v\d\w*(\.[a-z0-9.-]+)?")
HEARD = ("handshake/answered",)


@check("handshake/answered", "the handshake is answered", CLAUSE)
async def answered(subject: PluginUnderTest) -> None:
    """The introduction can be read and names at least one extension point."""
    introduction = await subject.shake_hands()
    expect(introduction.capabilities.extension_points, "extension points", brief(introduction))


@check("handshake/name", "the name is a DNS label", CLAUSE, after=HEARD)
async def name(subject: PluginUnderTest) -> None:
    """Profiles spell it."""
    expect(DNS_LABEL.fullmatch(subject.introduction.name), "a DNS label", repr(subject.introduction.name))


@check("handshake/version", "protocol version 1 is spoken", CLAUSE, after=HEARD)
async def version(subject: PluginUnderTest) -> None:
    """The kit, as the host, speaks version 1."""
    spoken = list(subject.introduction.supported_versions)
    expect(1 in spoken, "1 among supported_versions", spoken)


@check("handshake/repeatable", "another handshake gives the same answer", CLAUSE, after=HEARD)
async def repeatable(subject: PluginUnderTest) -> None:
    """It changes nothing and may be repeated."""
    again = await subject.shake_hands()
    expect(again == subject.introduction, f"again {brief(subject.introduction)}", brief(again))


@check("handshake/other-versions", "a host of other versions is answered too", CLAUSE, after=HEARD)
async def other_versions(subject: PluginUnderTest) -> None:
    """The host picks the version, and can't without an answer."""
    expect((await subject.shake_hands((998, 999))).name, "the introduction", "an answer without a name")


@check("handshake/extension-points", "extension points are known, each once", CLAUSE, after=HEARD)
async def extension_points(subject: PluginUnderTest) -> None:
    """An unspecified one is a protocol error."""
    points = list(subject.capabilities.extension_points)
    known = set(identity_pb2.ExtensionPoint.values()) - {identity_pb2.EXTENSION_POINT_UNSPECIFIED}
    expect(set(points) <= known and len(points) == len(set(points)), "known points, each once", points)


@check(
    "handshake/overlays",
    "overlays are filtered only by plugins that filter",
    CLAUSE,
    needs=("FILTER_OVERLAYS",),
)
async def overlays_need_filter(subject: PluginUnderTest) -> None:
    """FilterOverlays is Filter on other states."""
    expect(subject.offers("FILTER"), "FILTER beside FILTER_OVERLAYS", "FILTER_OVERLAYS alone")


@check("handshake/nodes", "a plugin that filters or scores asks for nodes", "State", after=HEARD)
async def nodes(subject: PluginUnderTest) -> None:
    """Without them there are no indices."""
    asked = subject.offers("FILTER") or subject.offers("SCORE")
    expect(subject.offers("nodes") or not asked, "state.nodes", "state without nodes")


@check("handshake/watched-kinds", "further kinds to watch have version and plural", "State", after=HEARD)
async def watched_kinds(subject: PluginUnderTest) -> None:
    """The host can't watch a kind that is not named in full."""
    for kind in subject.capabilities.state.resources:
        expect(kind.version and kind.resource and kind.resource.islower(), "version and plural", brief(kind))
        _check_selector(kind.label_selector)


@check("handshake/events", "events name a kind and actions", "Hints", needs=("events",))
async def events(subject: PluginUnderTest) -> None:
    """An interest without them covers nothing."""
    known = set(identity_pb2.ActionType.values()) - {identity_pb2.ACTION_TYPE_UNSPECIFIED}
    for interest in subject.capabilities.events:
        expect(
            KIND.fullmatch(interest.resource), "Node, Pod or plural.version.group", repr(interest.resource)
        )
        actions = list(interest.actions)
        expect(actions and set(actions) <= known, "known actions", actions)


@check("handshake/event-conditions", "conditions on events can be evaluated", "Hints", needs=("events",))
async def event_conditions(subject: PluginUnderTest) -> None:
    """What can't be read can't narrow anything."""
    for interest in subject.capabilities.events:
        _check_pointers(interest.changed_fields)
        _check_selector(interest.label_selector)


@check("handshake/hints-announced", "who wants to be asked for hints serves them", "Hints", needs=("events",))
async def hints_announced(subject: PluginUnderTest) -> None:
    """What is not announced is not called."""
    asks = any(interest.ask_hint for interest in subject.capabilities.events)
    expect(subject.offers("QUEUEING_HINTS") or not asks, "QUEUEING_HINTS beside ask_hint", "ask_hint alone")


@check("handshake/pod-fields", "pod fields are JSON pointers", "Equal pods", needs=("pod_fields",))
async def pod_fields(subject: PluginUnderTest) -> None:
    """A path that names nothing would make all pods equal."""
    paths = subject.capabilities.pod_fields.paths
    _check_pointers(paths)
    expect(all(paths), "pointers to fields", "a pointer to the whole pod")


@check(
    "handshake/limits",
    "the introduction keeps the limits",
    "Limits",
    after=(*HEARD, "handshake/watched-kinds", "handshake/event-conditions", "handshake/pod-fields"),
)
async def limits(subject: PluginUnderTest) -> None:
    """The host refuses a plugin that says too much, or that wants to see what plugins may not."""
    found = list(islice(problems_of(subject.introduction), 3))
    expect(not found, "an introduction within the limits", "; ".join(found))


@check("handshake/deadlines", "wanted deadlines are positive, one for each point", "Failures", after=HEARD)
async def deadlines(subject: PluginUnderTest) -> None:
    """The host clamps them, and can't guess which of two is meant."""
    wanted = subject.capabilities.wanted_deadlines
    durations = [each.deadline for each in wanted]
    if subject.capabilities.HasField("wanted_deadline"):
        durations.append(subject.capabilities.wanted_deadline)
    for duration in durations:
        expect(duration.ToNanoseconds() > 0, "more than 0", brief(duration))
    points = [each.extension_point for each in wanted]
    expect(len(points) == len(set(points)) and all(points), "each point once", points)


@check(
    "handshake/arguments-schema",
    "the arguments' schema is a JSON Schema of an object",
    CLAUSE,
    needs=("arguments_schema",),
)
async def arguments_schema(subject: PluginUnderTest) -> None:
    """Arguments are a JSON object."""
    text = subject.capabilities.arguments_schema
    try:
        schema = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        schema = error
    expect(isinstance(schema, dict), "a JSON object", text[:100])
    expect(schema.get("type", "object") == "object", "a schema of type object", schema.get("type"))
    properties = schema.get("properties", {})
    shaped = isinstance(properties, dict) and all(
        isinstance(each, dict | bool) for each in properties.values()
    )
    expect(shaped, "properties with schemas", properties)


def _check_pointers(paths: Iterable[str]) -> None:
    for path in paths:
        expect(POINTER.fullmatch(path), "a JSON pointer such as /metadata/labels/team", repr(path))


def _check_selector(text: str) -> None:
    try:
        parse_selector(text)
    except InvalidSelectorError as error:
        expect(met=False, expected="a label selector", came=error)
