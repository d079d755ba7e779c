"""A plugin that does one hostile deed: `python -m tests.hostile.sidecar DEED ADDRESS`."""

import sys
import threading
import time

from berth_sdk import ArgumentError, MetadataPatch, Plugin, Reason, WatchedResource, serve

LONG = "long " * 600_000


class Nothing(Plugin):
    """Lets every node pass."""

    name = "hostile"

    def filter(self, _pod, _node):
        return None


class LongReason(Nothing):
    """Turns every node down at length."""

    def filter(self, _pod, _node):
        return Reason(LONG)


class LongErrors(Nothing):
    """Refuses every profile at length."""

    def configure(self, _arguments, _profile):
        raise ArgumentError(LONG)


class OddKinds(Nothing):
    """Wants kinds that there are not, and one that is a path."""

    watches = (
        WatchedResource("", "v1", "../../api/v1/secrets?x="),
        *(WatchedResource("example.com", "v1", f"things{i}") for i in range(500)),
    )


class Patch(Nothing):
    """Takes away a label that belongs to the pod's ReplicaSet."""

    def pre_bind(self, _pod, _node):
        return MetadataPatch(labels={"pod-template-hash": None})


class Requeue(Nothing):
    """Says all the time that everything has changed."""

    def __init__(self):
        super().__init__()
        threading.Thread(target=self._say, daemon=True).start()

    def _say(self):
        while True:
            self.requeue.all_rejected("everything has changed")
            time.sleep(0.001)


DEEDS = {
    "nothing": Nothing,
    "long-reason": LongReason,
    "long-errors": LongErrors,
    "odd-kinds": OddKinds,
    "patch": Patch,
    "requeue": Requeue,
}

if __name__ == "__main__":
    serve(DEEDS[sys.argv[1]](), sys.argv[2])
