"""The `berth-capacity-scheduling` command."""

import sys

import berth_sdk
from berth_capacity_scheduling import CapacityScheduling


def main(argv: list[str] | None = None) -> int:
    """Serve the plugin until SIGTERM; 2 if it can't be served."""
    options = berth_sdk.flags("berth-capacity-scheduling", "Share a cluster between namespaces.").parse_args(
        argv
    )
    return berth_sdk.main(CapacityScheduling(), options)


if __name__ == "__main__":
    sys.exit(main())
