"""The `berth-fair-share` command."""

import sys

import berth_sdk
from berth_fair_share import FairShare


def main(argv: list[str] | None = None) -> int:
    """Serve the plugin until SIGTERM; 2 if it can't be served."""
    options = berth_sdk.flags("berth-fair-share", "Order the queue by what namespaces have.").parse_args(argv)
    return berth_sdk.main(FairShare(), options)


if __name__ == "__main__":
    sys.exit(main())
