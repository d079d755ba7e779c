"""The `berth-gpu-share` command."""

import argparse
import sys
from pathlib import Path

import berth_sdk
from berth_gpu_share import DEFAULT_POLICY, POLICIES, GpuShare
from berth_gpu_share.workload_file import WorkloadError, usual_pods


def main(argv: list[str] | None = None) -> int:
    """Serve the plugin until SIGTERM; 2 if it can't be served."""
    options = _parser().parse_args(argv)
    try:
        usual = usual_pods(options.workload) if options.workload else None
    except WorkloadError as error:
        sys.stderr.write(f"berth-gpu-share: {error}\n")
        return 2
    return berth_sdk.main(GpuShare(options.policy, options.seed, usual), options)


def _parser() -> argparse.ArgumentParser:
    parser = berth_sdk.flags("berth-gpu-share", "Share GPUs between pods.")
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
    return parser


if __name__ == "__main__":
    sys.exit(main())
