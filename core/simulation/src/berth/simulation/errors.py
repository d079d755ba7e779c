"""What can be wrong with what a simulation is given; the command prints the one line and exits with code 2.

SimulationError
├── InputError      a file, an object in it, its field, and what to do
├── ChangeError     an expression of --what-if
├── PluginsError    sidecars and extenders
├── SweepError      axes of a sweep, or its results
└── PlotError       a picture that cannot be made
"""


class SimulationError(Exception):
    """Nothing was simulated; the text is one line for the user."""


class InputError(SimulationError):
    """A file or an object in it is not what can be simulated."""


class ChangeError(SimulationError):
    """A change of the cluster that cannot be made."""


class PluginsError(SimulationError):
    """The configuration has sidecars or extenders."""
