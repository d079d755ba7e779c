"""Floor 2: expressions in the Common Expression Language, for device selectors and the rules of CRDs.

text -> tokens -> syntax (a tree) -> program and macros (closures), which operators and functions calculate
for; costs and metering bound what an evaluation may take, patterns what a regular expression may.
"""

from berth.cel.errors import CELError, CostLimitError, SyntaxProblemError
from berth.cel.metering import Look, look_at_nothing
from berth.cel.program import Evaluate, metered_program, program

__all__ = [
    "CELError",
    "CostLimitError",
    "Evaluate",
    "Look",
    "SyntaxProblemError",
    "look_at_nothing",
    "metered_program",
    "program",
]
