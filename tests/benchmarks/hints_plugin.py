"""The plugin that the hints benchmark starts: a hint for every second pod, for all pods at once.

python -m tests.benchmarks.hints_plugin NAME ADDRESS
"""

import sys

import numpy as np

from berth_sdk import Action, EventInterest, Plugin, serve


class EverySecond(Plugin):
    """Lets new nodes bring back every second pod."""

    events = (EventInterest("Node", (Action.ADD,)),)

    def __init__(self, name):
        self.name = name
        super().__init__()

    def pre_filter(self, _pod):
        return "not yet"

    def queueing_hints(self, pods, events):
        return np.tile(np.arange(len(pods)) % 2 == 0, (len(events), 1))


if __name__ == "__main__":
    serve(EverySecond(sys.argv[1]), sys.argv[2])
