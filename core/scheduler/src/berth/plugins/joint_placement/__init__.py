"""JointPlacement: the best nodes for all pods of a group together.

kinds, rules -> engine's scores -> candidates -> model (a program) -> solver -> plan
"""

from berth.plugins.joint_placement.plugin import JointPlacement

__all__ = ["JointPlacement"]
