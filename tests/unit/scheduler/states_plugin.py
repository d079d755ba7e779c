"""A plugin as a process of its own that is late for some pods, and holds some of them at Permit.

Called by tests as `python states_plugin.py SOCKET NAME VERSION`.
"""

import asyncio
import sys

from berth_sdk import Plugin, Wait, serve


class Told(Plugin):
    """Does what pods' labels say: the plugin named by `late` never answers, that named by `waits` holds."""

    def __init__(self, name, version):
        self.name, self.version = name, version

    def configure(self, arguments, profile):
        """Take none."""

    async def pre_filter(self, pod):
        if pod.labels.get("late") == self.name:
            await asyncio.Event().wait()  # the call's deadline ends it

    def filter(self, pod, node):
        del pod, node

    def permit(self, pod, node):
        del node
        return Wait(600.0) if pod.labels.get("waits") == self.name else None


if __name__ == "__main__":
    _, socket, name, version = sys.argv
    serve(Told(name, version), f"unix:{socket}", grace_seconds=0.2)
