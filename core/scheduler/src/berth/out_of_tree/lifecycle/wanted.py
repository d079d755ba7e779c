"""The desired plugins of a host, and the error where one can't be attached.

Not in attaching.py, which imports gRPC: a scheduler without sidecars imports this, too.
"""

import msgspec

from berth.config.out_of_tree.sidecars import SidecarSpec


class AttachError(ValueError):
    """A plugin can't be attached, replaced or detached as asked; the text says why."""


class DesiredPlugin(msgspec.Struct, frozen=True):
    """The desired state of a plugin: its entry, and the profiles to add it to."""

    spec: SidecarSpec
    profiles: tuple[str, ...] = ()
    weight: int = 1

    @classmethod
    def of(cls, spec: SidecarSpec) -> "DesiredPlugin":
        """The desired state that an entry of the plugin list describes."""
        return cls(spec, spec.profiles, spec.weight)
