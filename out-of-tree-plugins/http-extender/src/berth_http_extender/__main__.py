"""The `berth-http-extender` command."""

import argparse
import logging
import os
import sys

from berth_http_extender.plugin import HttpExtender
from berth_sdk import SdkError, serve

PROGRAM = "berth-http-extender"
ADDRESS = "BERTH_PLUGIN_ADDRESS"


def main(argv: list[str] | None = None) -> int:
    """Serve the plugin until SIGTERM; 2 if it can't be served."""
    options = _parser().parse_args(argv)
    logging.basicConfig(
        level=options.log_level.upper(),
        format="%(asctime)s %(levelname)s %(name)s %(message)s",
        stream=sys.stderr,
    )
    try:
        serve(HttpExtender(options.name), options.address)
    except SdkError as error:
        sys.stderr.write(f"{PROGRAM}: {error}\n")
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=PROGRAM, description="Ask a scheduler extender over HTTP.")
    parser.add_argument(
        "--address",
        default=os.environ.get(ADDRESS),
        help=f"unix:/path/to/socket; {ADDRESS} if not given",
    )
    parser.add_argument(
        "--name",
        default=HttpExtender.name,
        help="what the list calls the plugin: a second extender has a name of its own (default: %(default)s)",
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
