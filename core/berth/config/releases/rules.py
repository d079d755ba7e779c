"""What each release's kube-scheduler decides otherwise than the one before it, as named values.

A part takes the values that concern it from the rules that it is given when it is made. A value is named by
what it does, never by a release; which release has which value is in `RULES` alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from berth.config.releases.release import DEFAULT, Release


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The rules of one release."""

    release: Release
    pod_group_condition: str
    """The type of the condition that says what came of a PodGroup (kubernetes/kubernetes#139743)."""


_OF_1_36: Final = Rules(release=(1, 36), pod_group_condition="PodGroupScheduled")
_OF_1_37: Final = replace(_OF_1_36, release=(1, 37), pod_group_condition="PodGroupInitiallyScheduled")
_OF_1_38: Final = replace(_OF_1_37, release=(1, 38))

RULES: Final[Mapping[Release, Rules]] = MappingProxyType(
    {rules.release: rules for rules in (_OF_1_36, _OF_1_37, _OF_1_38)}
)
DEFAULT_RULES: Final = RULES[DEFAULT]
