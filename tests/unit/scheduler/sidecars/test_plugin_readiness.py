"""A scheduler in a pod shows there which of its plugins are ready, and why another is not."""

import tempfile
from pathlib import Path

from berth.config.out_of_tree.sidecars import arguments_digest
from berth_sdk import ArgumentError, Plugin
from berth_sdk.serving import Server
from tests.unit.scheduler_at_work import eventually, node, scheduling

OWN = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "berth-main-0", "namespace": "berth-system"},
    "spec": {"nodeName": "n0", "containers": [{"name": "scheduler", "image": "berth"}]},
}


class Picky(Plugin):
    """Says no to its arguments until it is changed."""

    name = "picky"
    errors = ("colour: missing; give one",)

    def configure(self, arguments, profile):
        del arguments, profile
        if self.errors:
            raise ArgumentError(*self.errors)

    def filter_nodes(self, pod, nodes):
        del pod
        return [0] * len(nodes)


def shown(sandbox, kind="plugin.berth.dev/picky"):
    """A plugin's condition on the scheduler's pod: status and message."""
    (pod,) = (entry.decode() for entry in sandbox.store.collection("pods").entries())
    conditions = {one["type"]: one for one in (pod.get("status") or {}).get("conditions") or ()}
    condition = conditions.get(kind, {})
    return condition.get("status"), condition.get("message", "")


async def test_shown_on_its_own_pod(tmp_path, monkeypatch):
    """Not there, there but refusing its arguments, ready: each shows, with the cause."""
    monkeypatch.setenv("POD_NAME", "berth-main-0")
    monkeypatch.setenv("POD_NAMESPACE", "berth-system")
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "berth-system"}}
    with tempfile.TemporaryDirectory(prefix="berth-") as folder:
        address = f"unix:{Path(folder, 'p.sock')}"
        async with scheduling(
            tmp_path / "kubeconfig", namespace, node("n0"), OWN, sidecars={"picky": address}
        ) as (sandbox, _):
            await eventually(lambda: shown(sandbox)[0] == "False")
            plugin = Picky()
            server = Server(plugin, address)
            await server.start()
            await eventually(lambda: "colour: missing; give one" in shown(sandbox)[1])
            assert "False" == shown(sandbox)[0]
            plugin.errors = ()
            await eventually(lambda: shown(sandbox)[0] == "True")
            await eventually(
                lambda: shown(sandbox, "arguments.plugin.berth.dev/picky") == ("True", arguments_digest(None))
            )
            await server.stop(0)
            await eventually(lambda: shown(sandbox, "arguments.plugin.berth.dev/picky") == (None, ""))
