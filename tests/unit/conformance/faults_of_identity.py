"""Broken introductions, arguments and health."""

from grpc_health.v1 import health_pb2

from berth_plugin_proto import identity_pb2 as pb
from berth_sdk.errors import ContractError
from tests.unit.conformance.broken import BrokenServer, Fault

OTHER, DEFAULT = "another-profile", "default-scheduler"


def introduced(change):
    """A handshake whose answer is changed."""

    async def call(server, name, request, proceed):
        response = await proceed(request)
        if name == "Handshake":
            change(server, request, response)
        return response

    return Fault(call)


def configured(change):
    """A Configure that `change(server, request)` answers, or changes the request of by answering None."""

    async def call(server, name, request, proceed):
        errors = change(server, request) if name == "Configure" else None
        return await proceed(request) if errors is None else pb.ConfigureResponse(errors=errors)

    return Fault(call)


async def no_introduction(_server, name, request, proceed):
    if name == "Handshake":
        raise ContractError("broken")
    return await proceed(request)


async def choosy(_server, name, request, proceed):
    if name == "Handshake" and 1 not in request.supported_versions:
        raise ContractError("broken")
    return await proceed(request)


async def deaf(_server, name, request, proceed):
    if name == "Configure" and request.handshake_errors:
        raise ContractError("broken")
    return await proceed(request)


async def any_profile(_server, name, request, proceed):
    if name == "Filter" and request.call.profile == "never-configured":
        request.call.profile = DEFAULT
    return await proceed(request)


def counting(server, _request, response):
    server.memory["count"] = server.memory.get("count", 0) + 1
    response.version = str(server.memory["count"])


def deadline_twice(_server, _request, response):
    for _ in range(2):
        response.capabilities.wanted_deadlines.add(
            extension_point=pb.EXTENSION_POINT_FILTER
        ).deadline.seconds = 1


def in_use_once(server, request):
    used = server.memory.setdefault("used", set())
    if request.profile == OTHER and request.protocol_version != 999 and not request.handshake_errors:
        if request.removed:
            used.discard(OTHER)
        elif OTHER in used:
            return ["in use"]
        elif not request.arguments:
            used.add(OTHER)
    return None


def any_version(_server, request):
    request.protocol_version = 1


def without_arguments(when):
    def change(_server, request):
        if when(request.arguments):
            request.ClearField("arguments")

    return change


def forgetful(server, request):
    if request.arguments == b"[1, 2]" and request.profile == DEFAULT:
        server.session.profiles.discard(DEFAULT)


def sticky(_server, request):
    return ["was never there"] if request.removed and request.profile == "never-configured" else None


def all_go(server, request):
    if request.removed and request.profile == OTHER:
        server.session.profiles.discard(DEFAULT)


class Dead(BrokenServer):
    async def start(self):
        await super().start()
        await self._health.set("", health_pb2.HealthCheckResponse.NOT_SERVING)


class NeverReady(BrokenServer):
    async def _report(self, *, ready):
        await super()._report(ready=ready and False)


class EverReady(BrokenServer):
    async def _report(self, *, ready):
        self.memory_of_health = ready or getattr(self, "memory_of_health", False)
        await super()._report(ready=self.memory_of_health)


def without(point):
    def change(_server, _request, response):
        response.capabilities.extension_points.remove(point)

    return introduced(change)


FAULTS = {
    "handshake/answered": Fault(no_introduction),
    "handshake/name": introduced(lambda _s, _q, r: setattr(r, "name", "Not a label")),
    "handshake/version": introduced(lambda _s, _q, r: r.supported_versions.__setitem__(0, 2)),
    "handshake/repeatable": introduced(counting),
    "handshake/other-versions": Fault(choosy),
    "handshake/extension-points": introduced(
        lambda _s, _q, r: r.capabilities.extension_points.append(pb.EXTENSION_POINT_FILTER)
    ),
    "handshake/overlays": without(pb.EXTENSION_POINT_FILTER),
    "handshake/nodes": introduced(lambda _s, _q, r: setattr(r.capabilities.state, "nodes", False)),
    "handshake/watched-kinds": introduced(
        lambda _s, _q, r: r.capabilities.state.resources[0].ClearField("version")
    ),
    "handshake/limits": introduced(lambda _s, _q, r: setattr(r, "version", "1.2.3 of today")),
    "handshake/events": introduced(lambda _s, _q, r: r.capabilities.events[1].ClearField("actions")),
    "handshake/event-conditions": introduced(
        lambda _s, _q, r: r.capabilities.events[1].changed_fields.append("no pointer")
    ),
    "handshake/hints-announced": without(pb.EXTENSION_POINT_QUEUEING_HINTS),
    "handshake/pod-fields": introduced(lambda _s, _q, r: r.capabilities.pod_fields.paths.append("metadata")),
    "handshake/deadlines": introduced(deadline_twice),
    "handshake/arguments-schema": introduced(
        lambda _s, _q, r: setattr(r.capabilities, "arguments_schema", b"[]")
    ),
    "configure/accepted": configured(lambda _s, q: ["no"] if q.profile == DEFAULT else None),
    "configure/repeated": configured(in_use_once),
    "configure/version": configured(any_version),
    "configure/handshake-errors": Fault(deaf),
    "configure/not-json": configured(without_arguments(lambda text: text == b'{"a":')),
    "configure/no-object": configured(without_arguments(lambda text: text == b"[1, 2]")),
    "configure/unknown-argument": configured(without_arguments(lambda text: b"noSuch" in text)),
    "configure/wrong-values": configured(without_arguments(lambda text: b"bonus" in text)),
    "configure/old-ones-stay": configured(forgetful),
    "configure/unknown-profile": Fault(any_profile),
    "configure/removed": configured(sticky),
    "configure/profiles-apart": configured(all_go),
    "configure/shadow": configured(lambda _s, q: ["no"] if q.shadow else None),
    "health/live": Fault(server=Dead),
    "health/ready": Fault(server=NeverReady),
    "health/not-ready": Fault(server=EverReady),
}
