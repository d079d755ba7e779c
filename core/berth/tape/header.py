"""The first line of a tape's file: which scheduler it is of, so that a replay makes the same one."""

from typing import Final

import msgspec

from berth.config.dump import to_yaml
from berth.config.flags.feature_gates import FeatureGates
from berth.config.loading import Loaded, load
from berth.config.shards import Shard

API_VERSION: Final = "simulation.berth.dev/v1alpha1"
KIND: Final = "SchedulerRecording"
FORMAT: Final = 1


class Header(msgspec.Struct, rename="camel", kw_only=True):
    """What a core is made with, beside its inputs."""

    api_version: str = API_VERSION
    kind: str = KIND
    format: int = FORMAT
    version: str
    """Of Berth."""
    began: str
    configuration: str
    """The effective KubeSchedulerConfiguration as YAML."""
    feature_gates: dict[str, bool]
    emulated_version: tuple[int, int]
    shards: dict[str, list[str]]
    """The profiles of each shard."""
    seed: int
    max_in_unschedulable_seconds: float

    @classmethod
    def of(
        cls,
        loaded: Loaded,
        *,
        version: str,
        began: str,
        seed: int,
        max_in_unschedulable_seconds: float,
        shards: tuple[Shard, ...] = (),
    ) -> "Header":
        """The header of a scheduler that is made so."""
        return cls(
            version=version,
            began=began,
            configuration=to_yaml(loaded.configuration),
            feature_gates=dict(loaded.gates.chosen),
            emulated_version=loaded.gates.release,
            shards={shard.name: list(shard.profiles) for shard in shards},
            seed=seed,
            max_in_unschedulable_seconds=max_in_unschedulable_seconds,
        )

    def loaded(self) -> Loaded:
        """The configuration. Raises: ConfigError."""
        return load(self.configuration, gates=FeatureGates(self.feature_gates, self.emulated_version))
