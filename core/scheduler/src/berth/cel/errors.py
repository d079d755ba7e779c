"""What can go wrong with an expression.

CELError
├── SyntaxProblemError     it does not parse: its author has to change it
├── EvaluationError        it parses, and fails on this device
└── CostLimitError         it takes more than it may: no operator makes up for it
"""

from typing import Final

COST_LIMIT_EXCEEDED: Final = "operation cancelled: actual cost limit exceeded"


class CELError(Exception):
    """An expression that gives no answer."""


class SyntaxProblemError(CELError):
    """The text is no expression, or uses what is not supported."""


class EvaluationError(CELError):
    """No such key, no such overload, and the like."""


class CostLimitError(CELError):
    """The evaluation went over its cost limit, and was stopped there."""

    def __init__(self) -> None:
        super().__init__(COST_LIMIT_EXCEEDED)
