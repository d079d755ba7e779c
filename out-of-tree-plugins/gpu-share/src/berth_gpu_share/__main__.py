"""The `berth-gpu-share` command."""

import argparse
import logging
import os
import sys

from berth_gpu_share import DEFAULT_POLICY, POLICIES, GpuShare
from berth_sdk import SdkError, serve


def main(argv: list[str] | None = None) -> int:
    """Serve the plugin until SIGTERM; 2 if it can't be served."""
    options = _parser().parse_args(argv)
    logging.basicConfig(
        level=options.log_level.upper(),
        format="%(asctime)s %(levelname)s %(name)s %(message)s",
        stream=sys.stderr,
    )
    try:
        serve(GpuShare(options.policy), options.address)
    except SdkError as error:
        sys.stderr.write(f"berth-gpu-share: {error}\n")
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="berth-gpu-share", description="Share GPUs between pods.")
    parser.add_argument(
        "--address",
        default=os.environ.get("BERTH_PLUGIN_ADDRESS"),
        help="unix:/path/to/socket; BERTH_PLUGIN_ADDRESS if not given",
    )
    parser.add_argument(
        "--policy",
        choices=sorted(POLICIES),
        default=DEFAULT_POLICY,
        help="how nodes and devices are chosen where a profile's arguments don't say (default: %(default)s)",
    )
    parser.add_argument(
        "--log-level",
        choices=("debug", "info", "warning", "error"),
        default="info",
        help="default: %(default)s",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
