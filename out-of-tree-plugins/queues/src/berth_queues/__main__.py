"""The `berth-queues` command."""

import os
import sys

import berth_sdk
from berth_queues.plugin import Queues
from berth_queues.status_writer import KubernetesClient, StatusClient
from berth_queues.watching import OPTIONAL, USUAL


def main(argv: list[str] | None = None) -> int:
    """Serve the plugin until SIGTERM; 2 if it can't be served."""
    flags = berth_sdk.flags("berth-queues", "Divide a cluster among a tree of queues.")
    flags.add_argument(
        "--kinds",
        nargs="+",
        choices=tuple(OPTIONAL),
        default=USUAL,
        metavar="KIND",
        help=f"kinds to follow, of {', '.join(OPTIONAL)}; each has to be in the cluster ({' '.join(USUAL)})",
    )
    flags.add_argument(
        "--status",
        choices=("no", "in-cluster", "kubeconfig"),
        default="no",
        help="write status of queues and quotas, with the pod's service account or KUBECONFIG (no)",
    )
    options = flags.parse_args(argv)
    try:
        client = None if options.status == "no" else _client(options.status)
    except Exception as error:  # noqa: BLE001 - of a package that has its own tree of errors
        sys.stderr.write(f"berth-queues: --status {options.status}: {error}\n")
        return 2
    return berth_sdk.main(Queues(options.kinds, client), options)


def _client(place: str) -> StatusClient:
    return KubernetesClient(os.environ.get("KUBECONFIG") if place == "kubeconfig" else None)


if __name__ == "__main__":
    sys.exit(main())
