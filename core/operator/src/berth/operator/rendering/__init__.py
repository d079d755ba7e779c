"""From a Scheduler and its plugins to the objects that make it run. No I/O, no state.

configuration (checked) ─▶ rights ─▶ pod ─▶ deployment and what surrounds it ─▶ plan
"""

from berth.operator.rendering.plan import SchedulerPlan, plan
from berth.operator.rendering.settings import SchedulerDefaults

__all__ = ["SchedulerDefaults", "SchedulerPlan", "plan"]
