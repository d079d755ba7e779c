"""How schedulers know each other when one sends a request on: by a token that is good for that alone.

    kubelet -- a token of the service account, its audience AUDIENCE --> TOKEN_FILE --> SendingOn
    the one that is asked -- TokenReview with that audience --> the scheduler's own user, or nothing

The API server takes no such token for its own requests, so that it is worth nothing to a server that a lease
names wrongly, but for explanations.
"""

import os
from collections.abc import Mapping
from pathlib import Path

SENT_ON_BY = "X-Berth-Sent-On-By"
"""The header of a request that was sent on: its bearer token is one for AUDIENCE."""
ASKED_BY = "X-Berth-Asked-By"
"""The header that names the user whom the first replica authorized; only such a token makes it count."""
AUDIENCE = "explain.berth.dev"
VARIABLE = "BERTH_REPLICA_TOKEN_FILE"
"""The variable that has the path of the token's file."""
TOKEN_FILE = "/var/run/secrets/berth.dev/token"  # noqa: S105 (a path)


def token_file(environ: Mapping[str, str] = os.environ) -> str:
    """The path of this process's token for other replicas."""
    return environ.get(VARIABLE) or TOKEN_FILE


def authorization(file: str) -> str:
    """The header's value; empty where this process was given no such token. Raises: OSError."""
    try:
        return f"Bearer {Path(file).read_text(encoding='ascii').strip()}"
    except FileNotFoundError:
        return ""
