"""Which API servers Berth was tried with, and what is said beside any other.

Called by: the scheduler at its start, and the operator, for a condition of every Scheduler. docs/versions.md
has the table and the promise.
"""

import re
from typing import Final, NamedTuple

from berth.config.releases.release import PREVIEWS, RELEASES, Release, shown

OLDEST: Final[Release] = (1, 33)
"""The oldest API server with which the tests run."""
NEWEST: Final[Release] = max(set(RELEASES) - PREVIEWS)
"""The newest release whose kube-scheduler decisions are compared with."""
_WRITTEN: Final = re.compile(r"v?([0-9]{1,4})\.([0-9]{1,4})(?![0-9])")


class Untried(NamedTuple):
    """Why a server counts as untried: a reason for programs, and a text."""

    reason: str
    text: str


def untried(git_version: str) -> Untried | None:
    """Say what is to be known of an API server of that version; None where it was tried, or says none."""
    found = _WRITTEN.match(git_version)
    if found is None:
        return None
    release = (int(found[1]), int(found[2]))
    if release > NEWEST:
        text = (
            f"Kubernetes {shown(release)} is newer than {shown(NEWEST)}, the newest that this version of "
            "Berth was tried with: what came with it is not followed, or as a preview; look for a newer "
            "Berth (docs/versions.md)"
        )
        return Untried("NewerThanTried", text)
    if release < OLDEST:
        text = (
            f"Kubernetes {shown(release)} is older than {shown(OLDEST)}, the oldest that Berth is tried "
            "with: upgrade the cluster first (docs/versions.md)"
        )
        return Untried("OlderThanTried", text)
    return None
