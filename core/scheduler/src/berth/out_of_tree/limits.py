"""Limits of what a sidecar may send: sizes, counts and rates, each with its reason.

What exceeds a limit is cut, delayed or refused where it is read; docs/protocol.md "Limits" says which.
"""

MESSAGE_BYTES = 4 << 20
"""gRPC's own default, and the bound of what the host sends: room for verdicts and scores of 400,000 nodes."""
ENVELOPE_BYTES = 16 << 10
"""What a transport may put around a request or a change within one message."""
METADATA_BYTES = 8 << 10
"""Headers and trailers of a call, a status' text among them."""
UNANSWERED = 1024
"""Calls on one ttrpc connection that wait for their answers."""
UNWRITTEN_BYTES = 8 << 20
"""What the host keeps of requests that a plugin does not read."""

REASON_BYTES = 1024
"""One reason, or the text of one failure: an event's note holds as much."""
TABLE_BYTES = 32 << 10
"""All reasons of one answer: a pod's condition may name each of them."""
STATUS_REASONS = 16
REFUSAL_BYTES = 4096
"""All that a plugin finds wrong with its arguments."""
REFUSALS = 16
VERSION_LENGTH = 64
NAME_BYTES = 64
"""A name in a message that says that it is the wrong one."""

HANDSHAKE_BYTES = 256 << 10
"""The whole introduction, which the host keeps; its largest part is the schema of the arguments."""
POINTS = 64
EVENTS = 128
EVENT_PARTS = 64
"""Fields, labels and resources that one event interest names."""
POD_FIELDS = 128
RESOURCES = 64
"""Names of extended resources that narrow which pods are sent."""
KINDS = 32
"""Each kind is a watch of its own, held open at the API server, and a copy of its objects."""
SELECTOR_LENGTH = 1024

PATCH_BYTES = 64 << 10
"""A quarter of what the API server allows all annotations of an object."""
PATCH_KEYS = 64
NAMED_PODS = 65536
"""Pods that one message may name; a plugin that means more says requeue_all."""

MESSAGES_A_SECOND = 1000.0
MESSAGES_AT_ONCE = 1000
REQUEUE_ALL_COST = 20
"""`requeue_all` looks at every pod that waits: what it counts beside other messages."""
NAMES_A_MESSAGE = 100
"""So many named pods count as one message more."""
SORT_KEYS = 4096
"""Sort keys in one message: each moves a pod within the queue."""
KEYS_A_MESSAGE = 20
"""So many sort keys count as one message more: at most 20,000 a second are taken over."""
PLACEMENTS = 1024
"""Sets of nodes in one answer: a pod group is tried in each of them."""
PLACEMENT_NAME_BYTES = 253
PROGRESS = 1024
"""How many numbers of pods one call of PlacementFeasible is about."""
GROUP_PROPOSALS = 16
"""Evictions that are proposed for one pod group: it is tried without the victims of each."""
TRANSFERS_AT_ONCE = 10
TRANSFERS_A_SECOND = 0.2
ACK_SECONDS = 30.0
"""How long steps of the state may stay unacknowledged."""
LINES_AT_ONCE = 20
LINES_A_SECOND = 0.5
