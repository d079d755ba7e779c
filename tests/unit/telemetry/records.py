"""Cycle records filled by hand, as an attempt would leave them."""

from berth.framework.attempts.cycle_record import CycleRecord, Interval
from berth.framework.status import SKIP, SUCCESS, Code, Status, unschedulable
from berth.objects.api_object import ObjectMeta
from berth.objects.pods.pod import Pod

TRACE_ID = bytes(range(16))
ROOT_ID = bytes(range(8))
SIDECAR_SPAN_ID = b"sidecar!"
WALL_OFFSET_NS = 1_700_000_000_000_000_000
MILLISECOND = 1_000_000


def make_record(**changes):
    """A record without intervals: enqueued at 1 ms, dequeued at 3 ms, ended at 20 ms."""
    fields = {
        "pod": Pod.of(ObjectMeta(name="web-1", namespace="shop", uid="u-1")),
        "profile": "default-scheduler",
        "attempt": 1,
        "trace_id": TRACE_ID,
        "root_span_id": ROOT_ID,
        "wall_offset_ns": WALL_OFFSET_NS,
        "enqueued_ns": 1 * MILLISECOND,
        "dequeued_ns": 3 * MILLISECOND,
        "first_enqueued_ns": 1 * MILLISECOND,
        "ended_ns": 20 * MILLISECOND,
        "status": SUCCESS,
        "result": "scheduled",
    }
    return CycleRecord(**fields | changes)


def interval(name, start_ms, end_ms, parent=-1, status=None, *, span_id=b"", **attributes):
    """An interval; times in milliseconds, end 0 for one that was cut short."""
    return Interval(
        name, int(start_ms * MILLISECOND), int(end_ms * MILLISECOND), parent, attributes, span_id, status
    )


def scheduled_record(**changes):
    """A pod that was bound after a cycle with two Filter plugins, one of them a sidecar."""
    return make_record(
        intervals=[
            interval("scheduling cycle", 3, 10, status=SUCCESS),
            interval("PreFilter", 3.5, 4, 0, SUCCESS),
            interval("NodePorts", 3.6, 3.9, 1, SKIP),
            interval("Filter", 4, 8, 0),
            interval("NodeAffinity", 4, 5, 3, rejected=7),
            interval("gpu-share", 5, 8, 3, rejected=2),
            interval("gpu-share Filter", 5.5, 7.5, 0, span_id=SIDECAR_SPAN_ID),
            interval("binding cycle", 11, 19, status=SUCCESS),
            interval("Bind", 12, 18, 7, SUCCESS),
            interval("DefaultBinder", 12, 18, 8, SUCCESS),
        ],
        node_count=10,
        evaluated_count=10,
        feasible_count=1,
        node_name="node-a",
        score=100,
        cycle_ended_ns=10 * MILLISECOND,
        **changes,
    )


def rejected_record(**changes):
    """A pod that fitted nowhere; its cycle was cut short within a plugin."""
    status = Status(Code.UNSCHEDULABLE, ("0/3 nodes are available.",), "NodeAffinity")
    return make_record(
        intervals=[
            interval("scheduling cycle", 3, 0),
            interval("Filter", 4, 0, 0),
            interval("NodeAffinity", 4, 0, 1),
            interval("PostFilter", 6, 9, 0, unschedulable("no victims")),
        ],
        status=status,
        result="unschedulable",
        **changes,
    )
