"""What can be wrong with what a simulation is given; the command prints the one line and exits with code 2.

SimulationError
├── InputError      a file, an object in it, its field, and what to do
├── ChangeError     an expression of --what-if
└── PluginsError    plugins that a simulation cannot have
"""


class SimulationError(Exception):
    """Nothing was simulated; the text is one line for the user."""


class InputError(SimulationError):
    """A file or an object in it is not what can be simulated."""


class ChangeError(SimulationError):
    """A change of the cluster that cannot be made."""


class PluginsError(SimulationError):
    """A plugin list names what a simulation cannot reach."""
