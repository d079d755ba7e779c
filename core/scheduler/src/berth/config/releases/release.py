"""Releases of Kubernetes, and the versions that feature gates go by.

Source: staging/src/k8s.io/component-base/version and compatibility (Kubernetes v1.36).
"""

import re
from typing import Final, TypeAlias

import msgspec

from berth.config.errors import ReleaseError
from berth.config.go_text import quote

Release: TypeAlias = tuple[int, int]

RELEASES: Final[tuple[Release, ...]] = ((1, 36), (1, 37), (1, 38))
"""The releases whose kube-scheduler can be followed, oldest first."""
PREVIEWS: Final[frozenset[Release]] = frozenset({(1, 38)})
"""Those that are followed as far as upstream had merged their changes; their vectors are yet to come."""
DEFAULT: Final[Release] = RELEASES[0]
"""The release that is followed where neither a flag nor an API server names one."""
_FLOOR: Final[Release] = (1, 31)
_EMULATED_BEFORE: Final = 3
_WRITTEN = re.compile(r"v?([0-9]{1,4})\.([0-9]{1,4})(?![0-9])")


def shown(release: Release) -> str:
    """Give a release as users write it, such as 1.37."""
    return f"{release[0]}.{release[1]}"


def named(text: str) -> Release:
    """Give the release that a user names.

    Raises:
        ReleaseError: it is none of those that can be followed.
    """
    found = _WRITTEN.fullmatch(text)
    release = (int(found[1]), int(found[2])) if found else None
    if release not in RELEASES:
        known = ", ".join(map(shown, RELEASES))
        raise ReleaseError(f"release {quote(text)} is none that Berth follows: name one of {known}")
    return release


def followed(git_version: str) -> Release | None:
    """Give the release to follow beside an API server of that version, such as v1.37.0-rc.0.

    That is the server's own release, or the nearest one that can be followed; None where the text is no
    version.
    """
    found = _WRITTEN.match(git_version)
    if found is None:
        return None
    return min(max((int(found[1]), int(found[2])), RELEASES[0]), RELEASES[-1])


class EffectiveVersion(msgspec.Struct, frozen=True):
    """The versions that decide what a feature gate is: the program's, the emulated, the oldest beside it."""

    binary: Release
    emulated: Release
    min_compatibility: Release


def effective(
    binary: Release = DEFAULT, emulated: Release | None = None, min_compatibility: Release | None = None
) -> EffectiveVersion:
    """Give a program's versions, with component-base's defaults for those that are left out.

    It emulates itself, and gets along with the release before the emulated one.
    """
    emulated = binary if emulated is None else emulated
    before = (emulated[0], emulated[1] - 1)
    return EffectiveVersion(binary, emulated, before if min_compatibility is None else min_compatibility)


def oldest_emulated(binary: Release) -> Release:
    """Give the oldest release that a program of this release can emulate."""
    return max((binary[0], binary[1] - _EMULATED_BEFORE), _FLOOR)
