"""The `berth-capacity-scheduling` command."""

import argparse
import logging
import os
import sys

from berth_capacity_scheduling import CapacityScheduling
from berth_sdk import SdkError, serve

PROGRAM = "berth-capacity-scheduling"


def main(argv: list[str] | None = None) -> int:
    """Serve the plugin until SIGTERM; 2 if it can't be served."""
    options = _parser().parse_args(argv)
    line = "%(asctime)s %(levelname)s %(name)s %(message)s"
    logging.basicConfig(level=options.log_level.upper(), format=line, stream=sys.stderr)
    try:
        serve(CapacityScheduling(), options.address)
    except SdkError as error:
        sys.stderr.write(f"{PROGRAM}: {error}\n")
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=PROGRAM, description="Share a cluster between namespaces.")
    address = os.environ.get("BERTH_PLUGIN_ADDRESS")
    parser.add_argument(
        "--address", default=address, help="unix:/path/to/socket; BERTH_PLUGIN_ADDRESS if not given"
    )
    levels = ("debug", "info", "warning", "error")
    parser.add_argument("--log-level", choices=levels, default="info", help="default: %(default)s")
    return parser


if __name__ == "__main__":
    sys.exit(main())
