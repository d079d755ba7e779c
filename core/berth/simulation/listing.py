"""A live cluster's objects, read page by page and never written to."""

from collections.abc import AsyncIterator, Iterable

import msgspec

from berth.client.errors import ClientError, NotFoundError
from berth.client.transport import Transport
from berth.client.watch import Source, pages
from berth.objects.decode import UndecodableObjectError
from berth.simulation.errors import InputError
from berth.simulation.kinds import KINDS, Kind, document_of

MOST_TRIES = 3
"""How often a list is begun anew whose pages the server no longer has."""


async def list_cluster(transport: Transport, kinds: Iterable[Kind] = KINDS) -> AsyncIterator[bytes]:
    """Yield every object of these kinds as JSON, with what decisions read.

    A kind that the server does not have has no objects.

    Raises: InputError.
    """
    for kind in kinds:
        try:
            async for document in _listed(transport, kind):
                yield document
        except NotFoundError:
            continue
        except ClientError as error:
            text = f"{kind.resource.plural}: {error}; reading needs list permission on every kind"
            raise InputError(text) from None


async def _listed(transport: Transport, kind: Kind) -> AsyncIterator[bytes]:
    source = Source(kind.resource, field_selector=kind.field_selector)
    async for page in pages(transport, source):
        for item in page.items or ():
            try:
                yield document_of(kind.decode(bytes(item)), kind)
            except (UndecodableObjectError, msgspec.MsgspecError) as error:
                raise InputError(f"{kind.resource.plural}: {error}; correct the object") from None
