"""Expressions in the Common Expression Language, as far as device selectors use it.

text -> tokens -> syntax (a tree) -> program (closures), which operators and functions calculate for.
"""

from berth.plugins.dynamic_resources.cel.errors import CELError
from berth.plugins.dynamic_resources.cel.program import Evaluate, program

__all__ = ["CELError", "Evaluate", "program"]
