"""Floor 6: the `berth` command."""

from berth.cli.main import main

__all__ = ["main"]
