"""What can go wrong with an expression.

CELError
├── SyntaxProblemError     it does not parse: whoever wrote it has to change it
└── EvaluationError        it parses, and fails on this device
"""


class CELError(Exception):
    """An expression that gives no answer."""


class SyntaxProblemError(CELError):
    """The text is no expression, or uses what is not supported."""


class EvaluationError(CELError):
    """No such key, no such overload, and the like."""
