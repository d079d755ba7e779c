"""In what the API servers of two releases differ, as far as clients see it.

Source: CHANGELOG-1.37.md, CHANGELOG-1.38.md (kubernetes/kubernetes#138219, #142327, #142197).
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import msgspec

from berth.config.releases.release import Release


class ReleaseShape(msgspec.Struct, frozen=True, kw_only=True):
    """What a server of one release does in its own way."""

    pod_groups: str
    """The version of PodGroups and Workloads, as where their API is turned on."""
    device_taint_rules: str
    """The version of DeviceTaintRules."""
    trees_of_groups: str = ""
    """The version of CompositePodGroups, as where their API is turned on; none where there is none."""
    puts_unknown_paths_into_words: bool = False
    """Whether an unknown path below /apis is answered with a Status, instead of plain text."""
    says_what_was_written: bool = False
    """Whether bindings and evictions are answered with the resource version that they led to."""


_OF_1_36: Final = ReleaseShape(pod_groups="v1alpha2", device_taint_rules="v1beta2")
_OF_1_37: Final = ReleaseShape(pod_groups="v1beta1", trees_of_groups="v1alpha3", device_taint_rules="v1")
_OF_1_38: Final = msgspec.structs.replace(
    _OF_1_37, puts_unknown_paths_into_words=True, says_what_was_written=True
)

SHAPES: Final[Mapping[Release, ReleaseShape]] = MappingProxyType(
    {(1, 36): _OF_1_36, (1, 37): _OF_1_37, (1, 38): _OF_1_38}
)
