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
from berth.tape.files import SUFFIX, TapeFile
from berth.tape.header import TapeHeader
from berth.tape.recorded_scheduler import Core, RecordedScheduler
from berth.tape.recorder import CoreRecorder

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
        folder.mkdir(parents=True, exist_ok=True)
        # Earlier runs keep what this one may not need: half of all.
        make_room(folder, max_bytes // 2)
        path = folder / f"{began:%Y%m%dT%H%M%S}.{began.microsecond:06}Z{SUFFIX}"
        self._file = TapeFile(path, header, max_bytes // 2)
        self._recorder = CoreRecorder(real, seed=header.seed, sink=self._file)
        self.ports = self._recorder.ports
        log.info("Recording: file=%s", path)

    def recorded(self, core: Core) -> RecordedScheduler:
        """The core as watches and scheduling loops are to drive it; it was made with `ports`."""
        return self._recorder.recorded(core)

    def spans(self) -> Mapping[str, float]:
        """How many spans were written and dropped so far."""
        return {"written": self._file.written, "dropped": self._file.dropped}

    def stop(self) -> None:
        """End the core's tasks."""
        self._recorder.close()

    def close(self) -> None:
        """Write what waits, and end the file; blocks, for some seconds at most."""
        self._file.close()


def make_room(folder: Path, max_bytes: int) -> None:
    """Remove the oldest recordings until the rest has at most so many bytes. Raises: OSError."""
    files = sorted(folder.glob(f"*{SUFFIX}"))
    sizes = [file.stat().st_size for file in files]
    total = sum(sizes)
    for file, size in zip(files, sizes, strict=True):
        if total <= max_bytes:
            return
        file.unlink()
        total -= size
