"""A plugin as a process of its own that scores wrongly, as a pod's label `fault` says.

Called by tests as `python scores_plugin.py SOCKET`.
"""

import sys

import numpy as np

from berth_sdk import Normalization, Plugin, Scores, serve

FAULTS = {
    "short": lambda count: Scores(np.zeros(count - 1, np.int64), Normalization.NONE),
    "negative": lambda count: Scores(np.full(count, -1, np.int64), Normalization.MAX),
    "large": lambda count: Scores(np.full(count, 101, np.int64), Normalization.NONE),
    "float": lambda count: Scores(np.full(count, 0.5), Normalization.NONE),
    "text": lambda _count: "50",
    "raises": lambda _count: {}["no such key"],
}


class Wrong(Plugin):
    """Scores wrongly."""

    name = "wrong"

    def configure(self, arguments, profile):
        """Take none."""

    def filter(self, pod, node):
        """Let all nodes pass."""

    def score_nodes(self, pod, nodes):
        """Answer what the pod's fault is."""
        return FAULTS[pod.labels["fault"]](len(nodes))


if __name__ == "__main__":
    serve(Wrong(), f"unix:{sys.argv[1]}", grace_seconds=0.2)
