"""Which plugins a host is to have, and why it can't have them.

Apart from attaching.py, which imports gRPC: a scheduler that hosts no plugin names these, too.
"""

import msgspec

from berth.config.out_of_tree.sidecars import SidecarSpec


class AttachError(ValueError):
    """A plugin can't be attached, replaced or detached as asked; the text says why."""


class DesiredPlugin(msgspec.Struct, frozen=True):
    """A plugin as it is to be: its entry, and the profiles that are to have it beside those that do."""

    spec: SidecarSpec
    profiles: tuple[str, ...] = ()
    weight: int = 1

    @classmethod
    def of(cls, spec: SidecarSpec) -> "DesiredPlugin":
        """What the entry of a list says."""
        return cls(spec, spec.profiles, spec.weight)
