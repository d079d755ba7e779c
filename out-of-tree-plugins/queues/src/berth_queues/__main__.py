"""The `berth-queues` command."""

import sys

import berth_sdk
from berth_queues.plugin import Queues
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
    options = flags.parse_args(argv)
    return berth_sdk.main(Queues(options.kinds), options)


if __name__ == "__main__":
    sys.exit(main())
