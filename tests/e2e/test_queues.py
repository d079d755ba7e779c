"""The plugin queues on an API server in memory and a real one: quotas, a gang's reclaim, and status."""

import asyncio
import json
import tempfile
from contextlib import asynccontextmanager, suppress
from functools import partial

import pytest
import yaml

from berth.client.api import Api
from berth.client.errors import NotFoundError
from berth.client.resources import POD_GROUPS, PODS
from berth.demo.processes import Child, program
from tests.benchmarks.queued_cluster import GATES, KINDS, PLUGINS, QUEUES, gang, namespace, node, pod, queue
from tests.e2e.api_servers import api_server_called
from tests.e2e.conftest import Cluster
from tests.e2e.default_cluster import CONFIGURATION, LOOK_SECONDS, default_cluster, start_scheduler
from tests.sockets import listens
from tests.suite import PATIENCE_SECONDS

pytestmark = pytest.mark.e2e
NODES, CORES, BORROWED = 3, 8, 11
PROFILE = """\
profiles:
- schedulerName: default-scheduler
  plugins:
    multiPoint: {{enabled: [{{name: queues}}]}}
    queueSort: {{disabled: [{{name: PrioritySort}}], enabled: [{{name: queues}}]}}
    postFilter: {{disabled: [{{name: DefaultPreemption}}]}}
"""
COMPANY = [
    queue("company", capacity="Nodes"),
    queue("batch", "company", namespaces=["batch"], limit={"cpu": str(2 * BORROWED)}),
    queue("owner", "company", namespaces=["owner"], quota={"cpu": str(2 * CORES)}),
]
SHOWN = [
    ["NAME", "PARENT", "QUOTA", "USED", "FAIR", "SHARE", "BORROWED", "WAITING"],
    ["batch", "company", '{"cpu":"8","pods":"4"}', '{"cpu":"8","pods":"5"}', '{"cpu":"8"}', "1"],
    ["company", '{"cpu":"24","pods":"6"}', '{"cpu":"24","pods":"7"}', "{}", "1"],
    ["owner", "company", '{"cpu":"16"}', '{"cpu":"16","pods":"2"}', '{"cpu":"16","pods":"2"}', "{}", "0"],
]
"""What `kubectl get queues` shows at the end, but for ages."""
FIELDS = (
    *("parent", "quota", "borrowingLimit", "lendingLimit", "limit", "weight", "priority", "capacity"),
    *("namespaces", "namespaceSelector", "used", "fairShare", "borrowed", "waiting", "message"),
)
STATUS = {"used": {"cpu": str(2 * CORES), "pods": "2"}, "waiting": 0}


class Seen:
    """The pods that there are, as a watch shows them."""

    def __init__(self):
        self.pods = {}

    def look(self, what, document):
        key = f"{document['metadata']['namespace']}/{document['metadata']['name']}"
        self.pods[key] = document
        if what == "DELETED":
            del self.pods[key]

    def placed(self, where):
        there = [each for key, each in self.pods.items() if key.startswith(f"{where}/")]
        return [each for each in there if each["spec"].get("nodeName")]

    def refused(self, where):
        """Why pods of a namespace wait, as their conditions say."""
        found = [
            each["status"].get("conditions", []) for key, each in self.pods.items() if key.startswith(where)
        ]
        return [one.get("message", "") for several in found for one in several if one["status"] == "False"]


@asynccontextmanager
async def plugin(sockets, folder):
    """The plugin's process, which writes status."""
    command = [program("berth-queues"), f"--address=unix:{sockets}/queues.sock", "--status=kubeconfig"]
    environment = {"KUBECONFIG": str(folder / "kubeconfig")}
    child = await Child.start(
        "queues", [*command, "--kinds", "Queue", "PodGroup"], folder / "queues.log", environment
    )
    try:
        yield child
    finally:
        await child.stop()


async def until(running, holds):
    """Ask the API server again and again until the answer is as it should be."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not await holds():
            running.scheduler.check()
            await asyncio.sleep(LOOK_SECONDS)


async def created(running, document):
    """Create a Queue; whether its definition is served already."""
    with suppress(NotFoundError):
        await running.create(QUEUES, [document])
        return True
    return False


@pytest.mark.parametrize("name", ["in memory", "real"])
async def test_quota_reclaim_and_status(tmp_path, name):
    """A queue stops at its limit, a gang takes its quota back over a restart, and the status says it."""
    documents = [
        yaml.safe_load((KINDS / "queues.yaml").read_text(encoding="utf-8")),
        *(namespace(each) for each in ("batch", "owner")),
        *(node(f"n{i}", {"cpu": str(CORES)}) for i in range(NODES)),
    ]
    with tempfile.TemporaryDirectory(prefix="berth-") as sockets:
        listed = tmp_path / "plugins.yaml"
        listed.write_text(PLUGINS.format(folder=sockets))
        flags = (f"--plugins={listed}", f"--feature-gates={GATES}")
        served = api_server_called(name)
        async with default_cluster(
            tmp_path, documents, CONFIGURATION + PROFILE, flags, server=served
        ) as running:
            seen = Seen()
            async with plugin(sockets, tmp_path), running.watching(seen.look):
                for each in COMPANY:
                    await until(running, partial(created, running, each))
                await running.reach(lambda: listens(f"{sockets}/queues.sock"))
                await running.create(PODS, [pod("batch", f"b{i}", {"cpu": "2"}) for i in range(BORROWED + 1)])
                await running.reach(
                    lambda: any("over its limit of cpu" in each for each in seen.refused("batch"))
                )
                await running.reach(lambda: len(seen.placed("batch")) == BORROWED)

                await running.scheduler.stop()
                groups, pods = gang("owner", "gang", 2, {"cpu": str(CORES)})
                await running.create(POD_GROUPS, groups)
                await running.create(PODS, pods)
                running.scheduler, surface = await start_scheduler(
                    tmp_path / "second.log", tmp_path / "scheduler.yaml", flags=flags
                )
                try:
                    await surface.wait_ready(running.scheduler, PATIENCE_SECONDS)
                    await running.reach(lambda: len(seen.placed("owner")) == len(pods))
                    await running.reach(lambda: len(seen.placed("batch")) == CORES // 2)
                    await until(running, partial(says, running, "owner", STATUS))
                    await until(running, partial(says, running, "batch", {"waiting": 1}))
                finally:
                    await running.scheduler.stop()
            kubectl = partial(asyncio.to_thread, Cluster("", tmp_path / "kubeconfig").kubectl)

            assert SHOWN == [line.split()[:-1] for line in (await kubectl("get", "queues")).splitlines()]
            explained = await kubectl("explain", "queue", "--recursive")
            assert [] == [field for field in FIELDS if field not in explained]
            assert "How many pods wait" in await kubectl("explain", "queue.status.waiting")


async def says(running, name, expected):
    """Whether the Queue's status has these fields."""
    status = json.loads(await Api(running.transport).get(QUEUES, "", name)).get("status", {})
    return {key: status.get(key) for key in expected} == expected
