"""What ends an observer; the command prints the one line and exits with code 2.

SimulationError
└── RecordingError   a file that cannot be written, a kind that cannot be read
"""

from berth.simulation.errors import SimulationError


class RecordingEndedError(SimulationError):
    """The cluster is not recorded any more."""
