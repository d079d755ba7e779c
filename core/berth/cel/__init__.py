"""Floor 2: expressions in the Common Expression Language, for device selectors and the rules of CRDs.

text -> tokens -> syntax (a tree) -> program (closures), which operators and functions calculate for.
"""

from berth.cel.errors import CELError, SyntaxProblemError
from berth.cel.program import Evaluate, program

__all__ = ["CELError", "Evaluate", "SyntaxProblemError", "program"]
