"""Configure: arguments are taken over or refused by profile, always by an answer."""

from typing import Any

import grpc
import msgspec

from berth.conformance.answers import decided, same
from berth.conformance.check import check, expect
from berth.conformance.host_state import shown
from berth.conformance.samples import make_pod
from berth.conformance.subject import PluginUnderTest, refused, skip

CLAUSE = "Order of calls"
OTHER = "another-profile"


@check(
    "configure/repeated",
    "the same arguments are accepted again, over another connection",
    CLAUSE,
)
async def repeated(subject: PluginUnderTest) -> None:
    """After a lost connection the host begins anew."""
    await subject.configure(OTHER)
    errors = await (await subject.another()).configure(OTHER)
    await subject.configure(OTHER, removed=True, arguments=None)
    expect(not errors, "no errors", errors)


@check("configure/version", "a version that is not spoken is an error in the reply", CLAUSE)
async def version(subject: PluginUnderTest) -> None:
    """A host must not believe that it is understood."""
    errors = await subject.configure(OTHER, protocol_version=999)
    expect(any(errors), "errors", "none")


@check("configure/handshake-errors", "what the host found wrong is listened to", CLAUSE)
async def handshake_errors(subject: PluginUnderTest) -> None:
    """The host reports for the plugin's log; the call itself is in order."""
    await subject.configure(OTHER, handshake_errors=["the kit says so, to see that it is heard"])


@check("configure/not-json", "arguments that are no JSON are an error in the reply", CLAUSE)
async def not_json(subject: PluginUnderTest) -> None:
    """Every error found is reported, as text."""
    errors = await subject.configure(OTHER, arguments=b'{"a":')
    expect(any(errors), "errors", "none")


@check("configure/no-object", "arguments that are no object are an error in the reply", CLAUSE)
async def no_object(subject: PluginUnderTest) -> None:
    """Arguments are a JSON object."""
    errors = await subject.configure(OTHER, arguments=b"[1, 2]")
    expect(any(errors), "errors", "none")


@check(
    "configure/unknown-argument",
    "an argument that the plugin does not know is refused",
    CLAUSE,
    after=("handshake/arguments-schema", "configure/repeated"),
)
async def unknown_argument(subject: PluginUnderTest) -> None:
    """A misspelt one would be ignored in silence."""
    if _schema(subject).get("additionalProperties") not in (None, False):
        raise skip("the schema allows any property")
    await _refused_arguments(subject, {"noSuchArgument": {"a": 1}})


@check(
    "configure/wrong-values",
    "arguments of a wrong type, or outside of what the schema allows, are refused",
    CLAUSE,
    after=("configure/unknown-argument",),
)
async def wrong_values(subject: PluginUnderTest) -> None:
    """The error names the argument when it is configured; later there is only a pod that fails."""
    given = subject.options.arguments or {}
    wrong = {**{name: _of_another_type(value) for name, value in given.items()}, **_wrong_by_schema(subject)}
    if not wrong:
        raise skip("no argument is known: announce arguments_schema, or give some with --args")
    await _refused_arguments(subject, *({**given, name: value} for name, value in wrong.items()))


async def _refused_arguments(subject: PluginUnderTest, *wrong: dict[str, Any]) -> None:
    """Offer arguments that are wrong, one after the other. Raises: UnmetError where some are accepted."""
    accepted = []
    for arguments in wrong:
        text = msgspec.json.encode(arguments)
        errors = await subject.configure(OTHER, arguments=text)
        await subject.configure(OTHER, removed=True, arguments=None)
        if not any(errors):
            accepted.append(text.decode())
    found = f"took {', '.join(accepted)} without a word: arguments are not checked"
    expect(not accepted, "an error about each wrong argument", found)


def _schema(subject: PluginUnderTest) -> dict[str, Any]:
    """The announced schema, empty where there is none."""
    declared: dict[str, Any] = msgspec.json.decode(subject.capabilities.arguments_schema or b"{}")
    return declared


def _of_another_type(value: Any) -> Any:
    return ["a list"] if not isinstance(value, list) else "a text"


def _wrong_by_schema(subject: PluginUnderTest) -> dict[str, Any]:
    """For each property whose schema says what is right, a value that is wrong."""
    found = {}
    for name, shape in _schema(subject).get("properties", {}).items():
        if not isinstance(shape, dict):
            continue
        if isinstance(minimum := shape.get("minimum"), (int, float)):
            found[name] = minimum - 1
        elif isinstance(maximum := shape.get("maximum"), (int, float)):
            found[name] = maximum + 1
        elif shape.get("type") in ("string", "integer", "number", "boolean", "object"):
            found[name] = _of_another_type("")
        elif shape.get("type") == "array":
            found[name] = _of_another_type([])
    return found


@check(
    "configure/old-ones-stay",
    "with errors in the reply the old arguments stay",
    CLAUSE,
    needs=("nodes",),
    after=("configure/no-object",),
)
async def old_ones_stay(subject: PluginUnderTest) -> None:
    """A bad edit of a configuration breaks nothing that works."""
    host = await shown(subject)
    before = await decided(host, subject.pods[0])
    await subject.configure(arguments=b"[1, 2]")
    same(before, await decided(host, subject.pods[0]), "the answer by the old arguments")


@check(
    "configure/unknown-profile",
    "a call for a profile that was not configured is refused",
    "Scheduling calls",
    needs=("FILTER",),
)
async def unknown_profile(subject: PluginUnderTest) -> None:
    """The host configures it and repeats the call."""
    host = await shown(subject)
    call = host.ask("Filter", make_pod("stranger", OTHER), of_call={"profile": "never-configured"})
    await refused(
        call, grpc.StatusCode.FAILED_PRECONDITION, "NOT_CONFIGURED", what="a call for an unknown profile"
    )


@check("configure/removed", "a profile can end its use and come back", CLAUSE)
async def removed(subject: PluginUnderTest) -> None:
    """There is nothing to find wrong with an end, nor with the end of what never began."""
    for profile in (OTHER, "never-configured"):
        errors = await subject.configure(profile, removed=True, arguments=None)
        expect(not errors, "no errors", errors)
    await subject.configure(OTHER)
    await subject.configure(OTHER, removed=True, arguments=None)
    errors = await subject.configure(OTHER)
    expect(not errors, "no errors when it comes back", errors)


@check(
    "configure/profiles-apart",
    "the end of one profile's use leaves the others",
    CLAUSE,
    needs=("nodes",),
    after=("configure/removed",),
)
async def profiles_apart(subject: PluginUnderTest) -> None:
    """Profiles know nothing of one another."""
    host = await shown(subject)
    before = await decided(host, subject.pods[0])
    await subject.configure(OTHER)
    await subject.configure(OTHER, removed=True, arguments=None)
    same(before, await decided(host, subject.pods[0]), "the same answer")


@check("configure/shadow", "a plugin can be configured as a shadow", "Shadow and recording")
async def shadow(subject: PluginUnderTest) -> None:
    """It does not have to know that it is not followed."""
    errors = await subject.configure(OTHER, shadow=True)
    await subject.configure(OTHER, removed=True, arguments=None)
    expect(not errors, "no errors", errors)
