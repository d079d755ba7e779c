"""The `berth-gpu-share` command."""

import argparse
import logging
import os
import sys
from pathlib import Path

from berth_gpu_share import DEFAULT_POLICY, POLICIES, GpuShare
from berth_gpu_share.workload_file import WorkloadError, usual_pods
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
        usual = usual_pods(options.workload) if options.workload else None
        serve(GpuShare(options.policy, options.seed, usual), options.address)
    except (SdkError, WorkloadError) as error:
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
        "--workload",
        type=Path,
        help="the pods that usually come, for fgd, which learns them from those it sees if not given",
    )
    parser.add_argument(
        "--seed",
        type=int,
        default=0,
        help="what the policy random draws, and the order of equal nodes where ties are fixed (default: 0)",
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
