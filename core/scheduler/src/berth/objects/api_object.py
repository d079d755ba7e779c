"""The base of every API object, and the metadata they share.

Objects are frozen structs decoded once from the API server's JSON; fields that scheduling never reads are
left out, so a decoded pod costs a fraction of the full object.
"""

from datetime import datetime
from typing import Annotated

import msgspec

Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
"""Numbers as the API has them: one that is beyond does not decode, so that no array meets it."""

ShortText = Annotated[str, msgspec.Meta(max_length=1024)]
"""Names and what else lands in log lines, keys and labels; the API server allows 253 characters."""


class ApiObject(msgspec.Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """A value as the API server writes it: camelCase keys, absent fields at their defaults."""


class OwnerReference(ApiObject, frozen=True):
    """Who owns the object; at most one owner is its controller."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class ObjectMeta(ApiObject, frozen=True):
    """The metadata that scheduling reads."""

    name: ShortText = ""
    namespace: ShortText = ""
    uid: ShortText = ""
    resource_version: ShortText = ""
    generation: Int64 = 0
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    owner_references: tuple[OwnerReference, ...] = ()

    @property
    def key(self) -> str:
        """The object as `namespace/name`, or its bare name outside namespaces."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class TypedObject(ApiObject, frozen=True):
    """An API object with metadata."""

    metadata: ObjectMeta = ObjectMeta()

    @property
    def name(self) -> str:
        """The object's name."""
        return self.metadata.name

    @property
    def namespace(self) -> str:
        """The object's namespace, empty outside namespaces."""
        return self.metadata.namespace

    @property
    def uid(self) -> str:
        """The object's UID."""
        return self.metadata.uid

    @property
    def key(self) -> str:
        """The object as `namespace/name`."""
        return self.metadata.key

    @property
    def labels(self) -> dict[str, str]:
        """The object's labels."""
        return self.metadata.labels
