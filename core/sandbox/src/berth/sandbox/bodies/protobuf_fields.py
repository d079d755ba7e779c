"""Field numbers of the types that clients send as protobuf: kubectl, a scheduler, an autoscaler.

The rest of a type, what a field holds, is in the published schemas (schemas.py). A type or number that is not
in the file beside this one is not read; `make proto` generates it (tests/protobuf_fields.py).
Source: struct tags of k8s.io/api and k8s.io/apimachinery (v0.36, v0.37).
"""

from importlib.resources import files
from typing import Final

import msgspec


class MessageFields(msgspec.Struct, frozen=True):
    """The fields of one type: JSON names by number."""

    names: dict[int, str] = {}
    inline: dict[int, str] = {}
    """Messages whose fields stand, as JSON, beside the others: types by number."""
    unset: list[str] = []
    """Numbers and flags that Go always writes, and leaves out of JSON when they are zero."""


_FILE: Final = files(__package__).joinpath("protobuf_fields.json")
FIELDS: Final = msgspec.json.decode(_FILE.read_bytes(), type=dict[str, MessageFields])
NO_FIELDS: Final = MessageFields()
