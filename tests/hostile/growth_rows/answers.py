"""Answers of sidecars: codes, scores, reasons, hints, sort keys, and what they introduce.

Each is read as far as its bound (berth.out_of_tree.limits); what is more is refused, which costs less.
"""

from contextlib import suppress

from berth.out_of_tree.errors import ProtocolError
from berth.out_of_tree.handshake_validation import problems_of
from berth.out_of_tree.limits import EVENTS, KINDS, POD_FIELDS, SORT_KEYS
from berth.out_of_tree.packing import hints_of, normalized, scores_of, sort_keys_of, verdicts_of
from berth.out_of_tree.queueing.hint_asker import MAX_EVENTS
from berth_plugin_proto import common_pb2, identity_pb2, queueing_pb2, scheduling_pb2
from tests.hostile.growth_rows.row import Row

PLUGIN = "hostile"
NODES = 400_000
"""The verdicts and scores of so many nodes fit into one message."""
REASONS = 255
PODS = 64


def of_answer(field, max_entries, answer, read):
    """A field of an answer, from the bytes of the message to what is made of it."""

    def stages(n):
        made = answer(n)
        data, kind = made.SerializeToString(), type(made)

        def take():
            with suppress(ProtocolError):
                read(kind.FromString(data), n)

        return {
            "decoding": take,
            "message": lambda: len(kind.FromString(data).SerializeToString()),
        }

    return Row("answer", field, answer, stages, None, max_entries)


def reasons(n):
    unschedulable = common_pb2.CODE_UNSCHEDULABLE
    table = [common_pb2.Reason(code=unschedulable, text=f"reason {i} of {n}") for i in range(n)]
    return scheduling_pb2.Verdicts(all=1, reasons=table)


def hints(n):
    listed = queueing_pb2.Hint(listed=queueing_pb2.PodColumns(columns=range(PODS)))
    return queueing_pb2.QueueingHintsResponse(hints=[listed] * n)


def events(n):
    interest = identity_pb2.EventInterest(resource="Pod", changed_fields=["/spec/a"], equal_labels=["a"])
    return introduction(events=[interest] * n)


def kinds(n):
    watched = [
        identity_pb2.WatchedResource(group="example.com", version="v1", resource=f"k{i}") for i in range(n)
    ]
    return introduction(state=identity_pb2.StateInterest(resources=watched))


def pod_fields(n):
    return introduction(pod_fields=identity_pb2.PodFields(paths=[f"/spec/f{i}" for i in range(n)]))


def introduction(**wanted):
    """What a plugin says of itself."""
    return identity_pb2.HandshakeResponse(name=PLUGIN, capabilities=identity_pb2.Capabilities(**wanted))


def read_scores(message, n):
    """Raw scores, mapped to 0 to 100."""
    return normalized(PLUGIN, scores_of(PLUGIN, message, n), scheduling_pb2.NORMALIZATION_MIN_MAX)


ROWS = [
    of_answer(
        "codes",
        NODES,
        lambda n: scheduling_pb2.Verdicts(each=bytes(n)),
        lambda message, n: verdicts_of(PLUGIN, message, n),
    ),
    of_answer("scores", NODES, lambda n: scheduling_pb2.Scores(int64=bytes(8 * n)), read_scores),
    of_answer("reasons", REASONS, reasons, lambda message, n: verdicts_of(PLUGIN, message, n)),
    of_answer("hints", MAX_EVENTS, hints, lambda message, n: hints_of(PLUGIN, message, n, PODS)),
    of_answer(
        "sort keys",
        SORT_KEYS,
        lambda n: queueing_pb2.SortKeysResponse(keys=[queueing_pb2.SortKey(parts=[1, 2])] * n),
        lambda message, n: sort_keys_of(PLUGIN, message.keys, n),
    ),
    of_answer("events", EVENTS, events, lambda message, _: list(problems_of(message))),
    of_answer("kinds to watch", KINDS, kinds, lambda message, _: list(problems_of(message))),
    of_answer("pod fields", POD_FIELDS, pod_fields, lambda message, _: list(problems_of(message))),
]
