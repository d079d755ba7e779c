"""A plugin as a process of its own, which holds pods up where their label `stops` says.

Of pods with the label `most-milli-cpu` it lets pass those that request no more than that.

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
        if "most-milli-cpu" in pod.labels:
            return (
                "more than the team may use"
                if pod.request("cpu") > int(pod.labels["most-milli-cpu"])
                else None
            )
        return "the quota is used up" if pod.labels.get("stops") == "filter" else None

    def permit(self, pod, node):
        del node
        return Wait(600.0) if pod.labels.get("stops") == "permit" else None


if __name__ == "__main__":
    serve(Quota(), f"unix:{sys.argv[1]}", grace_seconds=0.2)
