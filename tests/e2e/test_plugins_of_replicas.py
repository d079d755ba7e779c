"""Plugins of two replicas that no operator keeps: changed by the leader, which says for how long."""

import asyncio
import json
from functools import partial

import pytest
from click.testing import CliRunner

from berth.cli.main import main
from tests.e2e.faults import LEASES, faulty_cluster

pytestmark = pytest.mark.e2e
PLUGINS = """
apiVersion: berth.dev/v1alpha1
kind: PluginList
plugins: [{name: colours, address: "unix:/nonexistent/colours.sock", profiles: [default-scheduler]}]
"""


async def berth(cluster, replica, *arguments, code=0):
    """Give what `berth plugin` prints to that of a replica."""
    server = f"https://127.0.0.1:{cluster.surfaces[replica].port}"
    line = ["plugin", *arguments, "--server", server, "--insecure-skip-tls-verify"]
    result = await asyncio.to_thread(CliRunner().invoke, main, line)
    assert code == result.exit_code, result.output
    return result.output


def leads(cluster, replica):
    return "became leader" in cluster.log(replica).read_text()


async def names(asked, leader):
    """Say whether a replica refuses, and knows who leads: it may be ready before it has seen the lease."""
    return f"ask the leader ({leader})" in await asked()


async def test_standby_and_leader(tmp_path, api_server):
    """The standby refuses and names the leader, who says what keeps the change; the next goes by its list."""
    listed = tmp_path / "plugins.yaml"
    listed.write_text(PLUGINS)
    async with faulty_cluster(tmp_path, room=1, real=api_server.real) as cluster:
        for name in ("leader", "standby"):
            await cluster.start_scheduler(name, f"--plugins={listed}", elect=True)
            await cluster.ready(name)
            await cluster.until(lambda: leads(cluster, "leader"), "the first leads")
        lease = json.loads(await cluster.api.call("GET", f"{LEASES}/kube-scheduler"))
        asked = partial(berth, cluster, "standby", "shadow", "colours", code=2)
        await cluster.until(
            lambda: names(asked, lease["spec"]["holderIdentity"]), "the standby names the leader"
        )
        made = await berth(cluster, "leader", "shadow", "colours")
        await cluster.kill("leader")
        await cluster.until(lambda: leads(cluster, "standby"), "the other leads")

        first, second = made.splitlines()
        assert "colours is in shadow" == first
        assert second.startswith(
            "this holds while this replica leads, and the next leader goes by its own list"
        )
        assert second.endswith(f"to keep it, edit {listed} in every replica")
        assert "Shadow:            no" in await berth(cluster, "standby", "describe", "colours")
