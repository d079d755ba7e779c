"""Which schedulers there are and where their leaders answer, as the leaders say in their leases.

A leader writes it into an annotation each time it renews: address, certificate, profiles. What a former
leader wrote still says which profiles the lease is about: they have a scheduler, though none leads it now.

Called by: routing; the elector, which writes it.
"""

import msgspec

from berth.client.api import Api
from berth.client.resources import LEASES
from berth.client.wire import bounded

ANNOTATION = "explain.berth.dev/leader"
MAX_LEASES = 500


class Published(msgspec.Struct, frozen=True, rename="camel"):
    """What a leader says of itself."""

    identity: str
    address: str
    """HOST:PORT of its secure port; "" where nothing is served."""
    certificate: str
    """The SHA-256 of what it serves with, in hex: it is verified by that alone."""
    profiles: tuple[str, ...]

    def text(self) -> str:
        """As the annotation has it."""
        return msgspec.json.encode(self).decode()


class Leader(msgspec.Struct, frozen=True):
    """A lease, and what its last leader published."""

    lease: str
    published: Published
    current: bool = True
    """Whether that leader holds the lease."""


class _Metadata(msgspec.Struct, rename="camel"):
    name: str = ""
    creation_timestamp: str = ""
    annotations: dict[str, str] | None = None


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    holder_identity: str | None = None


class _Lease(msgspec.Struct):
    metadata: _Metadata
    spec: _Spec = _Spec()


class _Leases(msgspec.Struct):
    items: list[_Lease]


async def leaders(api: Api, namespace: str) -> list[Leader]:
    """The leaders, present and former, by the leases of a namespace, the oldest lease first.

    Raises: ClientError, MsgspecError.
    """
    body = await api.call("GET", LEASES.collection(namespace), query={"limit": MAX_LEASES})
    leases = sorted(_read(body).items, key=lambda lease: lease.metadata.creation_timestamp)
    found = map(_leader, leases)
    return [leader for leader in found if leader is not None]


_read = bounded(msgspec.json.Decoder(_Leases).decode)


def _leader(lease: _Lease) -> Leader | None:
    try:
        text = (lease.metadata.annotations or {}).get(ANNOTATION, "")
        published = msgspec.json.decode(text, type=Published)
    except msgspec.MsgspecError:
        return None  # kube-scheduler's, a kubelet's, or one that was written by hand
    return Leader(lease.metadata.name, published, published.identity == lease.spec.holder_identity)
