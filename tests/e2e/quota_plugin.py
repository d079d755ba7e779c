"""A plugin as a process of its own, which holds pods up where their label `stops` says.

Called by tests as `python quota_plugin.py SOCKET`.
"""

import sys

from berth_sdk import Plugin, Wait, serve


class Quota(Plugin):
    """Three places at which a quota may be asked for."""

    name = "quota"
    node_local = True

    def pre_enqueue(self, pod):
        return "the team has no quota" if pod.labels.get("stops") == "queue" else None

    def filter(self, pod, node):
        del node
        return "the quota is used up" if pod.labels.get("stops") == "filter" else None

    def permit(self, pod, node):
        del node
        return Wait(600.0) if pod.labels.get("stops") == "permit" else None


if __name__ == "__main__":
    serve(Quota(), f"unix:{sys.argv[1]}", grace_seconds=0.2)
