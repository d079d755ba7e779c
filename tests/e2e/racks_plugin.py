"""A plugin that lets no pod pass before there is a Rack: python -m tests.e2e.racks_plugin --address A."""

# ruff: noqa: ARG002 - the SDK gives the methods their parameters

import sys

from berth_sdk import Action, EventInterest, Plugin, Reason, main
from berth_sdk.plugin import WatchedResource

NO_RACK = Reason("cluster had no rack")


class Racks(Plugin):
    """Looks at a kind that may come later than the plugin."""

    name = "racks"
    reasons = (NO_RACK,)
    watches = (WatchedResource("example.com", "v1", "racks"),)
    events = (EventInterest("racks.v1.example.com", (Action.ADD,)),)

    def __init__(self):
        self.racks = set()

    def object_upserted(self, key, source):
        self.racks.add(key.name)

    def filter(self, pod, node):
        return None if self.racks else NO_RACK


if __name__ == "__main__":
    sys.exit(main(Racks()))
