"""The core that the default configuration describes, on fakes: writes land as soon as they are made."""

import random

from berth.config.loading import load
from berth.framework.core_ports import CorePorts
from berth.plugins.registry import IN_TREE
from berth.scheduler.plugin_source import InProcessPlugins
from berth.scheduler.scheduler import Scheduler
from berth.testing.handles import ManualClock, RecordingRecorder, RecordingVolumeWriter, RememberingWriter
from tests.fakes import Steps


class DefaultCore:
    """A scheduler without nodes, and the fakes around it."""

    def __init__(self, metrics=None, *, loaded=None, claims=None):
        self.clock, self.writer, self.recorder = ManualClock(1e9), RememberingWriter(), RecordingRecorder()
        self.background = Steps(self.clock)
        self.core = Scheduler(
            loaded or load(None),
            plugins=InProcessPlugins(IN_TREE),
            ports=CorePorts(
                pods=self.writer,
                volumes=RecordingVolumeWriter(),
                claims=claims,
                pod_groups=None,
                background=self.background,
                clock=self.clock,
                chance=random.Random(1),
            ),
            recorder=self.recorder,
            on_record=lambda _: None,
            on_ready=lambda: None,
            metrics=metrics,
        )
