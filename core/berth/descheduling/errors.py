"""What can be wrong with what the descheduler is given; the command prints one line and exits with code 2.

DeschedulingError
├── PolicyError     the policy's file, the field, and what to do
└── InputError      berth.simulation.errors: objects of the cluster
"""

from berth.simulation.errors import SimulationError


class DeschedulingError(SimulationError):
    """Nothing was planned; the text is one line for the user."""


class PolicyError(DeschedulingError):
    """A policy that is malformed, or asks for what is not done here."""
