"""A process without file descriptors: it goes on with what it has open, says so once, and recovers."""

import asyncio
import resource
from contextlib import contextmanager, suppress

import pytest

from berth.client.errors import ConflictError, RetryError
from berth.client.wire import encode
from berth.demo.processes import Child, program
from berth.demo.surface import LOOPBACK, Surface
from berth.operator.definitions import plugin_definition, scheduler_definition
from berth.sandbox.kubeconfig import kubeconfig_text
from tests.e2e.faults import faulty_cluster, namespace, node, pod
from tests.unit.operator.at_work import SCHEDULERS, SYSTEM
from tests.unit.operator.kit import CRDS, scheduler

pytestmark = pytest.mark.e2e

ROOM = 60
OUT_OF_THEM = "Too many open files"


@contextmanager
def no_descriptors(process):
    """Nothing is opened by the process; what is open stays."""
    soft, hard = resource.prlimit(process.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (3, hard))
    try:
        yield
    finally:
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (soft, hard))


async def knock(port, until):
    """Open connections to a port that are not accepted, for as long as a line is not in the log."""
    while not until():
        _, writer = await asyncio.open_connection(LOOPBACK, port)
        await asyncio.sleep(0.1)
        writer.close()


def counted(log, text):
    """The lines with the text."""
    return sum(text in line for line in log.read_text().splitlines())


def refused(log, kind):
    """The lines that say of a watch that no connection could be opened."""
    return sum(f'resource="{kind}" ' in line and OUT_OF_THEM in line for line in log.read_text().splitlines())


async def operator_of(cluster, surface):
    """An operator behind the proxy, with its port."""
    listening = await cluster.proxy.ask("listen", name="operator", user="")
    kubeconfig = cluster.folder / "operator.kubeconfig"
    kubeconfig.write_text(kubeconfig_text(f"http://{LOOPBACK}:{listening}"))
    command = [
        *(program("berth"), "operator", f"--kubeconfig={kubeconfig}", f"--namespaces={SYSTEM}"),
        *("--scheduler-image=berth/scheduler:test", "--no-leader-elect"),
        *(f"--bind-address={LOOPBACK}", f"--secure-port={surface.port}"),
    ]
    return await Child.start("operator", command, cluster.folder / "operator.log")


async def created(cluster, path, document):
    """Create it; over a connection that outlived its server this takes a second try."""

    async def tried():
        with suppress(RetryError, ConflictError):
            await cluster.api.call("POST", path, encode(document))
            return True
        return False

    await cluster.until(tried, "it is created")


def named(name, profile):
    document = scheduler(name, profiles=[{"schedulerName": profile}])
    return {**document, "metadata": {"name": name, "namespace": SYSTEM}}


async def reported(cluster, name):
    """Whether the operator has looked at the Scheduler: it wrote its status."""
    with suppress(RetryError):
        return bool((await cluster.get(f"{SCHEDULERS}/{name}")).get("status"))
    return False


async def test_a_scheduler_without_descriptors(tmp_path):
    """Over open connections it sees and binds; once these end it waits, and then goes on."""
    log = tmp_path / "one.log"
    async with faulty_cluster(tmp_path, room=ROOM) as cluster:
        await cluster.create(node("n0", pods=ROOM))
        await cluster.start_scheduler("one", "--request-timeout=2s")
        await cluster.ready("one")
        await cluster.create(*(pod(f"before-{i}") for i in range(10)))
        await cluster.until(lambda: len(cluster.witness.bound) == 10, "all are bound")
        port = cluster.surfaces["one"].port

        with no_descriptors(cluster.schedulers["one"]):
            await cluster.create(*(pod(f"without-{i}") for i in range(10)))
            await cluster.until(lambda: len(cluster.witness.bound) == 20, "what is open suffices")
            await knock(port, lambda: counted(log, "connection not accepted"))
            await cluster.kill_sandbox()
            await cluster.start_sandbox()
            await cluster.create(*(pod(f"unseen-{i}") for i in range(10)))
            await knock(port, lambda: refused(log, "pods"))
        await cluster.until(lambda: len(cluster.witness.bound) == 30, "the watches are back")
        await cluster.ready("one")

        assert 1 == counted(log, "connection not accepted")
        assert 1 == counted(log, "connections are accepted again")
        assert 1 == refused(log, "pods")
        assert 1 == await cluster.end("one")


async def test_an_operator_without_descriptors(tmp_path):
    """What it keeps stays as it is; what changes meanwhile is done afterwards."""
    async with faulty_cluster(tmp_path, room=ROOM) as cluster:
        for definition in (scheduler_definition(), plugin_definition()):
            await created(cluster, CRDS, definition)
        await cluster.create(namespace(SYSTEM))
        log, surface = tmp_path / "operator.log", Surface.free()
        operator = await operator_of(cluster, surface)
        try:
            await created(cluster, SCHEDULERS, named("first", "packing"))
            await cluster.until(lambda: reported(cluster, "first"), "it is at work")
            with no_descriptors(operator):
                await knock(surface.port, lambda: counted(log, "connection not accepted"))
                await cluster.kill_sandbox()
                await cluster.start_sandbox()
                await created(cluster, SCHEDULERS, named("second", "spreading"))
                await knock(surface.port, lambda: refused(log, "schedulers"))
                operator.check()
            await cluster.until(lambda: reported(cluster, "second"), "it goes on")
        finally:
            await operator.stop()

        assert 1 == counted(log, "connection not accepted")
        assert 1 == refused(log, "schedulers")
