"""APIServices: which requests go to other servers, and whether those answer.

Source: staging/src/k8s.io/kube-aggregator/pkg/controllers/status/remote (v1.36), which looks every half
minute and after each change; here it is every two seconds.
"""

import asyncio
from contextlib import suppress
from typing import Any, Final

import msgspec

from berth.aggregated_api.request_info import resource_of
from berth.sandbox.aggregation.backend import Backends
from berth.sandbox.aggregation.endpoints import FAILED_CHECK, EndpointError
from berth.sandbox.aggregation.front_proxy import FrontProxy
from berth.sandbox.attributes import RequestAttributes, SandboxUser
from berth.sandbox.errors import ApiError
from berth.sandbox.kinds.resource import ServedResource
from berth.sandbox.request import CompleteAnswer, Deferred, ReceivedRequest, json_response
from berth.sandbox.rest import RestStorage
from berth.sandbox.store import Json

GROUP: Final = "apiregistration.k8s.io"
CHECK_SECONDS: Final = 2.0
_CHECKER: Final = SandboxUser("system:kube-aggregator", ("system:masters",))
_OK: Final = 200


class _Listed(msgspec.Struct, rename="camel"):
    name: str
    kind: str
    namespaced: bool = False
    singular_name: str = ""
    verbs: list[str] = []
    short_names: list[str] = []


class _ResourceList(msgspec.Struct):
    resources: list[_Listed] = []


class Aggregation:
    """The groups that APIServices add; follows them from `begin` to `close`."""

    def __init__(self, rest: RestStorage, proxy: FrontProxy) -> None:
        self._rest = rest
        self._backends = Backends(rest, proxy)
        self._collection = rest.store.collection(f"apiservices.{GROUP}")
        self._served: dict[str, list[ServedResource]] = {}
        self._following: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()

    def begin(self) -> None:
        """Follow the APIServices."""
        self._collection.subscribe(self._changed.set)
        self._changed.set()
        self._following = asyncio.get_running_loop().create_task(self._follow())

    def close(self) -> None:
        """Stop."""
        if self._following is not None:
            self._following.cancel()

    def asked(self, request: ReceivedRequest) -> RequestAttributes | None:
        """Give what a request asks of another server; None where it is for this one."""
        service = self._service_of(request.path)
        if service is None:
            return None
        about = resource_of(request.method, request.path, watch=request.flag("watch"))
        if about is None:
            return RequestAttributes(request.method.lower(), path=request.path)
        resource = f"{about.resource}/{about.subresource}" if about.subresource else about.resource
        return RequestAttributes(about.verb, about.group, resource, about.namespace, about.name)

    def answer(self, request: ReceivedRequest, user: SandboxUser) -> Deferred:
        """Give the other server's answer, once it comes."""
        return Deferred(lambda: self._answer(request, user))

    async def _answer(self, request: ReceivedRequest, user: SandboxUser) -> CompleteAnswer:
        try:
            service = self._service_of(request.path)
            if service is None:
                raise ApiError.no_such_resource()
            return await self._backends.send(service["spec"], request, user)
        except ApiError as error:
            return json_response(error.status(), error.code)

    def _service_of(self, path: str) -> Json | None:
        parts = path.strip("/").split("/")
        if parts[0] != "apis" or len(parts) < 3:  # noqa: PLR2004 (apis, group and version)
            return None
        entry = self._collection.get(f"{parts[2]}.{parts[1]}")
        document = None if entry is None else entry.decode()
        return document if document is not None and document["spec"].get("service") else None

    async def _follow(self) -> None:
        while True:
            self._changed.clear()
            found = {entry.key: entry.decode() for entry in self._collection.entries()}
            for name in self._served.keys() - found.keys():
                self._serve(name, [])
            for name, document in found.items():
                await self._check(name, document)
            with suppress(TimeoutError):
                async with asyncio.timeout(CHECK_SECONDS if found else None):
                    await self._changed.wait()

    async def _check(self, name: str, document: Json) -> None:
        spec = document["spec"]
        if not spec.get("service"):
            self._note(name, "True", "Local", "Local APIServices are always available")
            return
        request = ReceivedRequest(
            "GET", f"/apis/{spec['group']}/{spec['version']}", {}, {"accept": "application/json"}
        )
        try:
            listed = _listed(await self._backends.send(spec, request, _CHECKER))
        except EndpointError as error:
            self._note(name, "False", error.condition, error.message)
        except ValueError as error:
            self._note(name, "False", FAILED_CHECK, f"{request.path}: {error}")
        else:
            self._serve(name, [_resource(spec, one) for one in listed if "/" not in one.name])
            self._note(name, "True", "Passed", "all checks passed")

    def _serve(self, name: str, resources: list[ServedResource]) -> None:
        """Show these resources in discovery, instead of those before."""
        before = self._served.pop(name, [])
        if resources:
            self._served[name] = resources
        if list(map(_shown, before)) == list(map(_shown, resources)):
            return
        for one in before:
            self._rest.catalogue.remove(one)
        for one in resources:
            self._rest.catalogue.add(one)

    def _note(self, name: str, status: str, reason: str, message: str) -> None:
        """Write the condition, where it says something new."""
        services = self._rest.catalogue.get(GROUP, "v1", "apiservices")
        assert services is not None
        entry = self._collection.get(name)
        if entry is None:
            return
        conditions = (entry.decode().get("status") or {}).get("conditions") or [{}]
        said = {"type": "Available", "status": status, "reason": reason, "message": message}
        if said.items() <= conditions[0].items():
            return
        changed = conditions[0].get("status") != status
        since = self._rest.now() if changed else conditions[0]["lastTransitionTime"]

        def edit(document: Json) -> None:
            document["status"] = {"conditions": [{"lastTransitionTime": since, **said}]}

        self._rest.change(services, "", name, edit)


def _resource(spec: Json, listed: _Listed) -> ServedResource:
    return ServedResource(
        spec["group"],
        spec["version"],
        listed.name,
        listed.kind,
        namespaced=listed.namespaced,
        singular=listed.singular_name,
        short_names=tuple(listed.short_names),
        verbs=tuple(listed.verbs),
    )


def _shown(resource: ServedResource) -> tuple[Any, ...]:
    return resource.qualified, resource.kind, resource.namespaced, resource.verbs, resource.short_names


def _listed(answer: CompleteAnswer) -> list[_Listed]:
    """Give the resources of a group. Raises: ValueError where the answer has none."""
    if answer.status != _OK:
        raise ValueError(f"bad status: {answer.status}")
    try:
        return msgspec.json.decode(b"".join(answer.parts), type=_ResourceList).resources
    except msgspec.DecodeError as error:
        raise ValueError(f"not a list of resources: {error}") from error
