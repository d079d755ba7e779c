"""What the queue knows of a profile."""

from collections.abc import Sequence

import msgspec

from berth.framework.interface import KeyedQueueSortPlugin, PreEnqueuePlugin
from berth.queue.requeueing.hints import NO_HINTS, HintMap


class QueueProfile(msgspec.Struct, frozen=True):
    """A profile's PreEnqueue plugins, in its order, and the events that its plugins wait for.

    `sorter` is its QueueSort plugin, if it is a sidecar.
    """

    pre_enqueue: Sequence[PreEnqueuePlugin] = ()
    hints: HintMap = NO_HINTS
    sorter: KeyedQueueSortPlugin | None = None
