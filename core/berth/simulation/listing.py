"""A live cluster's objects, read page by page and never written to."""

from collections.abc import AsyncIterator, Iterable

import msgspec

from berth.client.errors import ClientError, NotFoundError
from berth.client.transport import Transport
from berth.client.watch import Source, pages
from berth.objects.api_object import TypedObject
from berth.objects.decode import UndecodableObjectError
from berth.simulation.errors import InputError
from berth.simulation.kinds import KINDS, Kind, document_of


async def list_cluster(transport: Transport, kinds: Iterable[Kind] = KINDS) -> AsyncIterator[bytes]:
    """Yield every object of these kinds as JSON, with what decisions read.

    A kind that the server does not have has no objects.

    Raises: InputError.
    """
    for kind in kinds:
        async for obj, _ in list_kind(transport, kind):
            yield document_of(obj, kind)


async def list_kind(transport: Transport, kind: Kind) -> AsyncIterator[tuple[TypedObject, bytes]]:
    """Yield every object of the kind, and as the server wrote it; none where it does not have the kind.

    Raises: InputError.
    """
    source = Source(kind.resource, field_selector=kind.field_selector)
    try:
        async for page in pages(transport, source):
            for item in page.items or ():
                written = bytes(item)
                yield _decoded(kind, written), written
    except NotFoundError:
        return
    except ClientError as error:
        text = f"{kind.resource.plural}: {error}; reading needs list permission on every kind"
        raise InputError(text) from None


def _decoded(kind: Kind, written: bytes) -> TypedObject:
    try:
        obj: TypedObject = kind.decode(written)
    except (UndecodableObjectError, msgspec.MsgspecError) as error:
        raise InputError(f"{kind.resource.plural}: {error}; correct the object") from None
    return obj
