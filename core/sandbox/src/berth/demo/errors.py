"""What can go wrong with the main job itself.

DemoError              say it in one line and exit 2: an input or the machine is not as it has to be
└── ChildFailedError   a process that was started ended early; its log says why
"""

from pathlib import Path


class DemoError(Exception):
    """The run cannot start; the text says why and what to do."""


class ChildFailedError(DemoError):
    """A process ended that should be running."""

    def __init__(self, name: str, code: int | None, last_words: str, log: Path) -> None:
        super().__init__(f"{name} ended with code {code}: {last_words} (log: {log})")
