"""A plugin as a process of its own, at the points where few take part: a gate, room, and the binding itself.

Called by tests as `python points_plugin.py SOCKET KUBECONFIG`. What it did it writes down in a file `DONE`
beside the socket, a line for each thing. Pods say by labels what is to be done with them.
"""

import json
import sys
import urllib.request
from pathlib import Path

import yaml

from berth_sdk import SKIP, Code, Nomination, Plugin, PodStage, Status, dispatch, overlays, serve


class Points(Plugin):
    """`gate: closed` keeps a pod out; an `evictable` pod makes room; `binder: own` is bound here."""

    name = "points"
    node_local = True
    wants_nominations = True

    def __init__(self, kubeconfig: Path, done: Path) -> None:
        self._kubeconfig = kubeconfig
        self._done = done
        self._failed: set[str] = set()

    def note(self, *words: str) -> None:
        """Write a line."""
        with self._done.open("a") as file:
            file.write(" ".join(words) + "\n")

    def pre_enqueue(self, pod):
        return "the gate is closed" if pod.labels.get("gate") == "closed" else None

    def filter(self, pod, node):
        del pod, node

    def post_filter(self, pod, nodes, verdicts):
        del verdicts
        for node in nodes:
            for uid, placed in nodes.pods_on(node.name).items():
                if "evictable" in placed.pod.labels:
                    self.note("room for", pod.name, "on", node.name)
                    return Nomination(node.name, (uid,))
        return "no pod is evictable"

    def pod_upserted(self, placed):
        if placed.stage is PodStage.NOMINATED:
            self.note(placed.pod.name, "is promised", placed.node_name)

    def bind(self, pod, node, annotations):
        del annotations
        if pod.labels.get("binder") != "own":
            return SKIP
        if pod.labels.get("fails") == "once" and pod.uid not in self._failed:
            self._failed.add(pod.uid)
            return Status(Code.ERROR, ("not this time",))
        self.note("binds", pod.name)
        self._write_binding(pod, node.name)
        return None

    def _write_binding(self, pod, node_name):
        cluster = yaml.safe_load(self._kubeconfig.read_text())["clusters"][0]["cluster"]
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": pod.name, "uid": pod.uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node_name},
        }
        request = urllib.request.Request(
            f"{cluster['server']}/api/v1/namespaces/{pod.namespace}/pods/{pod.name}/binding",
            json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )
        urllib.request.urlopen(request, timeout=10).close()


def count_overlays(plugin: Points) -> None:
    """Let the SDK note each call about nodes with other pods on them, and how many nodes it was about."""
    _, request_type = dispatch.UNARY["SchedulingService"]["FilterOverlays"]

    async def counted(session, request):
        plugin.note("overlays", str(len(request.overlays)))
        return await overlays.filter_overlays(session, request)

    dispatch.UNARY["SchedulingService"]["FilterOverlays"] = counted, request_type


if __name__ == "__main__":
    _, socket, kubeconfig = sys.argv
    points = Points(Path(kubeconfig), Path(socket).with_name("DONE"))
    count_overlays(points)
    serve(points, f"unix:{socket}")
