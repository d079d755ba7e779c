"""The `berth-http-extender` command."""

import sys

import berth_sdk
from berth_http_extender.plugin import HttpExtender


def main(argv: list[str] | None = None) -> int:
    """Serve the plugin until SIGTERM; 2 if it can't be served."""
    parser = berth_sdk.flags("berth-http-extender", "Ask a scheduler extender over HTTP.")
    parser.add_argument(
        "--name",
        default=HttpExtender.name,
        help="what the list calls the plugin: a second extender has a name of its own (default: %(default)s)",
    )
    options = parser.parse_args(argv)
    return berth_sdk.main(HttpExtender(options.name), options)


if __name__ == "__main__":
    sys.exit(main())
