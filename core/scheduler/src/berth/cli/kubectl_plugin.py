"""`kubectl berth`: the same program, found by kubectl under this name."""

from berth.cli.main import main


def kubectl_berth() -> None:
    """Run, and call ourselves as the user did."""
    main(prog_name="kubectl berth")
