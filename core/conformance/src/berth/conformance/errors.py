"""What a check may raise about a plugin.

UnmetError        the plugin does not keep a clause: the check failed
UnsuitableError   the check cannot be put to this plugin: it is skipped
"""

from typing import Any


class UnmetError(Exception):
    """The plugin did not do what the check expects."""

    def __init__(self, expected: str, came: Any) -> None:
        super().__init__(f"expected {expected}, came {came}")
        self.expected = expected
        self.came = str(came)


class UnsuitableError(Exception):
    """The check says nothing about this plugin, for the reason given."""
