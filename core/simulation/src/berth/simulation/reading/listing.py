"""Lists a live cluster's objects, page by page; nothing is written."""

from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any, Final

import msgspec

from berth.client.errors import AnsweredError, ClientError, NotFoundError, NotSentError, RejectedError
from berth.client.resources import Resource, in_each_version
from berth.client.transport import Transport
from berth.client.watching.watch import WatchSource, pages
from berth.client.wire import bounded, decode_document, encode
from berth.objects.api_object import TypedObject
from berth.objects.decode import UndecodableObjectError
from berth.simulation.errors import InputError
from berth.simulation.reading.kinds import KINDS, SCHEDULER_OBJECTS, SimulatedKind, document_of

_OF_SCHEDULERS: Final = (
    "profiles",
    "plugins",
    "featureGates",
    "extenders",
    "parallelism",
    "percentageOfNodesToScore",
    "podInitialBackoffSeconds",
    "podMaxBackoffSeconds",
)
_OF_PLUGINS: Final = (
    "image",
    "address",
    "extensionPoints",
    "failurePolicy",
    "timeout",
    "exemptPods",
    "shadow",
    "metadataKeys",
    "arguments",
    "weight",
)
_SHOWN: Final = frozenset((*_OF_SCHEDULERS, *_OF_PLUGINS))
"""Of the specs of SCHEDULER_OBJECTS: what decides, and no containers, environments or rights."""
_FORBIDDEN: Final = 403


async def list_cluster(transport: Transport, kinds: Iterable[SimulatedKind] = KINDS) -> AsyncIterator[bytes]:
    """Yield every object of these kinds as JSON, with the fields that decisions read.

    A kind that the server does not have has no objects.

    Raises: InputError; NotSentError where the server cannot be reached.
    """
    for kind in kinds:
        async for obj, _ in list_kind(transport, kind):
            yield document_of(obj, kind)


async def list_kind(transport: Transport, kind: SimulatedKind) -> AsyncIterator[tuple[TypedObject, bytes]]:
    """Yield every object of the kind, typed and as the server's JSON; none where it does not have the kind.

    Raises: InputError; NotSentError where the server cannot be reached.
    """
    for resource in in_each_version(kind.resource):
        try:
            async for item in _items(transport, kind, resource):
                yield _decoded(kind, item), item
        except NotFoundError:
            continue
        return


async def _items(transport: Transport, kind: SimulatedKind, resource: Resource) -> AsyncIterator[bytes]:
    try:
        async for page in pages(transport, WatchSource(resource, field_selector=kind.field_selector)):
            for item in page.items or ():
                yield bytes(item)
    except (NotFoundError, NotSentError):
        raise
    except ClientError as error:
        refused = isinstance(error, AnsweredError) and error.status == _FORBIDDEN
        remedy = "; reading needs list permission on every kind" if refused else ""
        raise InputError(f"{kind.resource.plural}: {error}{remedy}") from None


def _decoded(kind: SimulatedKind, written: bytes) -> TypedObject:
    try:
        obj: TypedObject = bounded(kind.decode)(written)
    except (UndecodableObjectError, msgspec.MsgspecError) as error:
        raise InputError(f"{kind.resource.plural}: {error}; correct the object") from None
    return obj


async def list_scheduler_objects(transport: Transport) -> AsyncIterator[bytes]:
    """Yield every Scheduler and SchedulerPlugin as JSON, with what decides; none where they may not be read.

    Raises: InputError.
    """
    for kind, resource in SCHEDULER_OBJECTS.items():
        try:
            async for page in pages(transport, WatchSource(resource)):
                for item in page.items or ():
                    yield encode(shown_scheduler_object(kind, decode_document(bytes(item))))
        except NotFoundError:
            return
        except ClientError as error:
            if not (isinstance(error, RejectedError) and error.status == _FORBIDDEN):
                text = f"{resource.plural}: {error}; try again once the API server answers"
                raise InputError(text) from None


def shown_scheduler_object(kind: str, document: Mapping[str, Any]) -> dict[str, Any]:
    """The object with what decides, without keys of extenders."""
    given = document["metadata"]
    metadata = {name: given[name] for name in ("name", "namespace") if name in given}
    spec = {name: value for name, value in (document.get("spec") or {}).items() if name in _SHOWN}
    for extender in spec.get("extenders") or ():
        (extender.get("tlsConfig") or {}).pop("keyData", None)
    version = SCHEDULER_OBJECTS[kind].api_version
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}
