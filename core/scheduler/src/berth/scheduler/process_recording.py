"""The recording of a scheduler process, where --record-to asks for one."""

from pathlib import Path
from typing import TYPE_CHECKING

from berth.framework.core_ports import CorePorts
from berth.scheduler.process_options import ProcessOptions
from berth.serving.errors import StartError
from berth.version import version

if TYPE_CHECKING:
    from berth.recordings.core.recording import TapeRecording


CAUSE = "sidecars and extenders cannot be replayed"


def no_plugins_while_recorded(options: ProcessOptions) -> str:
    """Say why plugins are not attached, where that is so because of the recording."""
    if not options.record_to:
        return ""
    return f"this scheduler is recorded (--record-to), and {CAUSE}: attach them to one that is not"


def new_recording(options: ProcessOptions, real: CorePorts) -> "TapeRecording | None":
    """The recording that the options ask for, None for none.

    Raises: StartError where it cannot be replayed, or not be written.
    """
    if not options.record_to:
        return None
    if options.has_sidecars or options.loaded.extenders:
        raise StartError(f"--record-to: {CAUSE}: take them out, or record them with `berth plugin record`")
    # Imported here so that a scheduler without a recording starts quickly.
    from berth.recordings.core.recording import TapeRecording  # noqa: PLC0415 (see above)

    try:
        return TapeRecording(
            Path(options.record_to),
            options.loaded,
            real,
            max_bytes=options.record_most_bytes,
            version=version(),
            max_in_unschedulable_seconds=options.max_in_unschedulable_seconds,
            seed=options.seed,
            shards=options.shards,
        )
    except OSError as error:
        text = f"--record-to {options.record_to}: {error.strerror}: name a folder that can be written to"
        raise StartError(text) from None
