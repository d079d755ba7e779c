"""One record, several who want it."""

import logging
from collections.abc import Callable

from berth.framework.attempts.cycle_record import CycleRecord

log = logging.getLogger(__name__)

OnRecord = Callable[[CycleRecord], None]


def fan_out(*consumers: OnRecord) -> OnRecord:
    """Tell all of them of a record; one that fails is logged, and costs neither the others nor the cycle."""

    def on_record(record: CycleRecord) -> None:
        for consumer in consumers:
            try:
                consumer(record)
            except Exception:
                log.exception("cycle record not taken pod=%s", record.pod.key)

    return on_record
