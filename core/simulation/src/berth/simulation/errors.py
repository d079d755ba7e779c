"""The errors of a simulation's input; the command prints one line and exits with code 2.

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
    """A file, or an object in it, can't be simulated."""


class ChangeError(SimulationError):
    """A change of the cluster that can't be applied."""


class PluginsError(SimulationError):
    """The configuration has sidecars or extenders."""
