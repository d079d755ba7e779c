"""The first line of a tape's file: which scheduler it is of, so that a replay makes the same one."""

from datetime import datetime
from typing import Final

import msgspec

from berth.config.dump import to_yaml
from berth.config.feature_gates import FeatureGates
from berth.config.loading import LoadedConfig, load
from berth.config.releases.release import DEFAULT, effective
from berth.config.shards import Shard

API_VERSION: Final = "simulation.berth.dev/v1alpha1"
KIND: Final = "SchedulerRecording"
FORMAT: Final = 2


class TapeHeader(msgspec.Struct, rename="camel", kw_only=True):
    """What a core is made with, beside its inputs."""

    api_version: str = API_VERSION
    kind: str = KIND
    format: int = FORMAT
    version: str
    """Of Berth."""
    began: datetime
    configuration: str
    """The effective KubeSchedulerConfiguration as YAML."""
    feature_gates: dict[str, bool]
    release: tuple[int, int] = DEFAULT
    """The release of Kubernetes whose rules are followed."""
    emulated_version: tuple[int, int]
    min_compatibility_version: tuple[int, int] | None = None
    shards: dict[str, list[str]]
    """The profiles of each shard."""
    seed: int
    max_in_unschedulable_seconds: float

    @classmethod
    def of(
        cls,
        loaded: LoadedConfig,
        *,
        version: str,
        began: datetime,
        seed: int,
        max_in_unschedulable_seconds: float,
        shards: tuple[Shard, ...] = (),
    ) -> "TapeHeader":
        """The header of a scheduler that is made so."""
        version_followed = loaded.gates.version
        return cls(
            version=version,
            began=began,
            configuration=to_yaml(loaded.configuration),
            feature_gates=dict(loaded.gates.chosen),
            release=version_followed.binary,
            emulated_version=version_followed.emulated,
            min_compatibility_version=version_followed.min_compatibility,
            shards={shard.name: list(shard.profiles) for shard in shards},
            seed=seed,
            max_in_unschedulable_seconds=max_in_unschedulable_seconds,
        )

    def loaded(self) -> LoadedConfig:
        """The configuration. Raises: ConfigError."""
        version = effective(self.release, self.emulated_version, self.min_compatibility_version)
        return load(self.configuration, gates=FeatureGates(self.feature_gates, version))
