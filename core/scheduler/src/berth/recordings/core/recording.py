"""A scheduler's recording, as `berth scheduler --record-to DIR` has it: a file for each run of the process.

The files of earlier runs stay as long as all of them together have the bytes that are allowed; the oldest go
first.
"""

import logging
import secrets
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from berth.config.loading import LoadedConfig
from berth.config.shards import Shard
from berth.framework.core_ports import CorePorts
from berth.recordings.core.files import SUFFIX, TapeFile
from berth.recordings.core.header import TapeHeader
from berth.recordings.core.recorded_scheduler import Core, RecordedScheduler
from berth.recordings.core.recorder import CoreRecorder
from berth.recordings.line_files import LineFile, remove_oldest

log = logging.getLogger(__name__)

SEED_BITS: Final = 32


class TapeRecording:
    """One run's recording, on the running event loop; `ports` are what the core is made with."""

    def __init__(
        self,
        folder: Path,
        loaded: LoadedConfig,
        real: CorePorts,
        *,
        max_bytes: int,
        version: str,
        max_in_unschedulable_seconds: float,
        seed: int | None = None,
        shards: tuple[Shard, ...] = (),
    ) -> None:
        """Begin a file in the folder. Raises: OSError."""
        began = datetime.fromtimestamp(real.clock.wall(), UTC)
        header = TapeHeader.of(
            loaded,
            version=version,
            began=began.replace(microsecond=0),
            seed=secrets.randbits(SEED_BITS) if seed is None else seed,
            max_in_unschedulable_seconds=max_in_unschedulable_seconds,
            shards=shards,
        )
        # Earlier runs keep what this one may not need: half of all.
        remove_oldest(folder, [f"*{SUFFIX}"], max_bytes=max_bytes // 2)
        file = LineFile.begun(folder, began, SUFFIX, header)
        self._file = TapeFile(file, max_bytes // 2)
        self._recorder = CoreRecorder(real, seed=header.seed, sink=self._file)
        self.ports = self._recorder.ports
        log.info("recording file=%s", file.path)

    def recorded(self, core: Core) -> RecordedScheduler:
        """The core as watches and scheduling loops are to drive it; it was made with `ports`."""
        return self._recorder.recorded(core)

    def span_counts(self) -> Mapping[str, float]:
        """How many spans were written, and how many were dropped."""
        return {"written": self._file.written, "dropped": self._file.dropped}

    def stop(self) -> None:
        """End the core's tasks."""
        self._recorder.close()

    def close(self) -> None:
        """Write what waits, and end the file; blocks, for some seconds at most."""
        self._file.close()
