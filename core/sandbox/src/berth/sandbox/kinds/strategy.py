"""What differs between kinds when they are written: defaults, admission, validation.

The registry (rest.py) calls these hooks around every write; a kind without its own strategy gets this one.

Source: pkg/registry/*/*/strategy.go and plugin/pkg/admission (v1.36).
"""

from collections.abc import Callable

import msgspec

from berth.sandbox.errors import Cause
from berth.sandbox.kinds.resource import ServedResource
from berth.sandbox.store import Json, SandboxStore


class Context(msgspec.Struct, frozen=True):
    """What a strategy may look at besides the object itself."""

    store: SandboxStore
    resource: ServedResource
    now: Callable[[], str]
    keep_status: bool = False
    """Whether a created object brings its status along, as when a file is loaded."""


class RestStrategy:
    """The hooks, doing what most kinds want. Documents are changed in place."""

    any_name = False
    label_name = False
    keeps_status_on_create = False

    def prepare_create(self, document: Json, context: Context, /) -> None:
        """Set defaults and run admission on a new object."""

    def prepare_update(self, new: Json, old: Json, context: Context, /) -> None:
        """Set defaults again and carry over what an update may not touch."""

    def prepare_status(self, new: Json, old: Json, context: Context, /) -> None:
        """Carry over what a status update may not touch; the registry has kept spec."""

    def prepare_resize(self, new: Json, old: Json, /) -> None:
        """Leave of an update of the subresource `resize` what that one is for; pods alone have it."""

    def validate(self, _document: Json, /) -> list[Cause]:
        """Find the wrong fields of an object, new or updated."""
        return []

    def validate_update(self, _new: Json, _old: Json, /) -> list[Cause]:
        """Find changes that are not allowed."""
        return []

    def validate_resize(self, _new: Json, _old: Json, /) -> list[Cause]:
        """Find changes that are not allowed by the subresource `resize`."""
        return []
