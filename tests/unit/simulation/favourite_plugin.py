"""A plugin as a process of its own: scores the node that its arguments name, and fails for pods that say so.

Called by tests as `python favourite_plugin.py [VERSION]`, with the address in BERTH_PLUGIN_ADDRESS.
"""

import asyncio
import sys
from dataclasses import dataclass

from berth_sdk import Plugin, Wait, WatchedResource, serve


@dataclass(frozen=True)
class Settings:
    """Which node is the best, and which takes no pods."""

    best: str = ""
    shunned: str = ""


class Favourite(Plugin):
    """One node is the best; another one takes no pods. Pods labelled hold wait for its word at Permit."""

    name = "favourite"
    arguments = Settings
    watches = (WatchedResource("example.com", "v1", "maps"),)

    def __init__(self, version):
        self.version = version
        self._maps = {}

    def object_upserted(self, key, source):
        self._maps[key.name] = source

    def filter(self, pod, node):
        if pod.labels.get("app") == "breaks":
            raise ValueError("this pod breaks the plugin")
        if pod.labels.get("needs", "") not in ("", *self._maps):
            return "node(s) had no map for it"
        return "node(s) were shunned" if node.name == self.arguments_of(pod).shunned else None

    def score(self, pod, node):
        return 100 if node.name == self.arguments_of(pod).best else 0

    def permit(self, pod, node):
        del node
        if "hold" not in pod.labels:
            return None
        if pod.labels["hold"] == "for long":
            asyncio.get_running_loop().call_later(3600, self.requeue.allow, [pod.uid], "held")
            return Wait(5)
        if pod.labels["hold"] == "chatting":
            self._chat = asyncio.get_running_loop().create_task(self._say_nothing_new())
            return Wait(5)
        asyncio.get_running_loop().call_soon(self.requeue.allow, [pod.uid], "held for a moment")
        return Wait(3600)

    async def _say_nothing_new(self):
        while True:
            self.requeue.allow(["none"], "talkative")
            await asyncio.sleep(0.001)


if __name__ == "__main__":
    serve(Favourite(*(sys.argv[1:] or ["1"])), grace_seconds=0.2)
