"""The options of a simulation."""

from collections.abc import Sequence

import msgspec

from berth.config.loading import LoadedConfig
from berth.simulation.plugins.plugin_settings import NO_PLUGINS, SimulatedSidecars
from berth.simulation.what_if.changes import ClusterChange


class SimulationOptions(msgspec.Struct, frozen=True):
    """How to simulate. Units: virtual seconds."""

    loaded: LoadedConfig
    plugins: SimulatedSidecars = NO_PLUGINS
    """The sidecars."""
    seed: int = 0
    max_seconds: float = 366 * 24 * 3600.0
    """When it ends at the latest."""
    queues_every: float = 0.0
    """How often it is read what each queue has; 0: never."""
    changes: Sequence[ClusterChange] = ()
    """What happens to the cluster meanwhile; those of the beginning are the input's."""
