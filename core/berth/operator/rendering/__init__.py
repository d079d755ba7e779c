"""From a Scheduler and its plugins to the objects that make it run. No I/O, no state.

configuration (checked) ─▶ rights ─▶ pod ─▶ deployment and what surrounds it ─▶ plan
"""

from berth.operator.rendering.plan import Plan, plan
from berth.operator.rendering.settings import Settings

__all__ = ["Plan", "Settings", "plan"]
