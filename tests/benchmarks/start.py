"""What a scheduler's start takes, in CPU and in time: to its first request, to everything listed, to its
first binding; and how much memory it has at rest, and had at most.

In a cluster of 5,000 nodes and 2,000 waiting pods, or as `--nodes`, `--pods` and `--placed` say; `--real`
takes a real API server, `KUBE_SCHEDULER` names a kube-scheduler to be run beside, and `--beside DIR` another
tree with a `.venv` of its own. All of them start in turns. CPU is what counts where other processes are busy
on the machine.

Modules are compiled before the first round, as they are in an image: without that half of a start is the
compiler's. A cold start has neither them, nor libraries, nor kube-scheduler's program in the page cache.
"""

import asyncio
import os
import re
import signal
import sysconfig
import tempfile
import time
from contextlib import asynccontextmanager, suppress
from itertools import count
from pathlib import Path

import msgspec

from berth.client.api import Api
from berth.client.resources import NODES, PODS
from berth.client.transport import Transport
from berth.client.watching.watch import WatchSource, current_version, watch_lines
from berth.client.wire import encode
from berth.demo.processes import Child, program
from berth.sandbox.free_port import free_port
from tests.benchmarks.proving import api_server
from tests.benchmarks.tables import Table, quantiles
from tests.benchmarks.workloads import node_bytes
from tests.e2e.api_servers import ApiServer
from tests.e2e.faults import pod
from tests.kube_scheduler import kube_scheduler

NODE_COUNT, WAITING, ROUNDS, AT_ONCE = 5_000, 2_000, 11, 32
CACHES = ("warm", "cold")
UNBOUND = {"fieldSelector": "spec.nodeName="}
DEEDS = ("first request", "everything listed", "first binding")
LOOK_SECONDS, START_SECONDS = 0.01, 300.0
REST_SECONDS, REST_AFTER_SECONDS = 1.0, 60.0
QUIET_CPU = 0.1
"""The share of a CPU below which a scheduler counts as at rest."""
BINDING_WATCH_SECONDS = 600
TOLERATIONS = [
    {
        "key": f"node.kubernetes.io/{state}",
        "operator": "Exists",
        "effect": "NoExecute",
        "tolerationSeconds": 300,
    }
    for state in ("not-ready", "unreachable")
]
CONFIGURATION = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {{kubeconfig: {kubeconfig}, qps: -1}}
leaderElection: {{leaderElect: false}}
"""


def run(options):
    """A table for each scheduler and state of the page cache."""
    commands = {
        "berth": (program("berth"), "scheduler"),
        "berth, beside": options.beside and (str(options.beside / ".venv/bin/berth"), "scheduler"),
        "kube-scheduler": kube_scheduler() and (kube_scheduler(),),
    }
    rows = {name: command for name, command in commands.items() if command and options.match in name}
    asyncio.run(measured(options, rows, options.rounds or ROUNDS))


async def measured(options, rows, rounds):
    nodes, waiting = options.nodes or NODE_COUNT, options.pods or WAITING
    server = ApiServer(real=options.real)
    with tempfile.TemporaryDirectory(prefix="berth-") as temporary:
        folder = Path(temporary)
        async with api_server(folder, server) as endpoint:
            await create_all(endpoint, *cluster(nodes, options.placed, real=server.real))
            which = "a real API server" if server.real else "the sandbox"
            size = f"{nodes:,} nodes, {waiting:,} waiting and {options.placed:,} placed pods, {which}"
            starts = {(cache, name): [] for cache in CACHES for name in rows}
            numbers = count()
            for number, (cache, name) in [(i, each) for i in range(rounds + 1) for each in starts]:
                await fill_up(endpoint, waiting, numbers)
                if cache == "cold":
                    forget_files(folder / "compiled", rows[name])
                start = await one_start(folder, endpoint, rows[name])
                if number:  # the first one compiles
                    starts[cache, name].append(start)
            for (cache, name), measured_ones in starts.items():
                show(f"{name}'s start, page cache {cache}, with {size}", measured_ones)
            for name, command in rows.items():
                await fill_up(endpoint, waiting, numbers)
                show_memory(name, await memory(folder, endpoint, command))


async def fill_up(endpoint, waiting, numbers):
    """Create as many pods as it takes for so many to wait."""
    transport = Transport(endpoint)
    listed = msgspec.json.decode(await Api(transport).call("GET", PODS.collection("default"), query=UNBOUND))
    await transport.aclose()
    missing = waiting - len(listed["items"])
    await create_all(endpoint, *((PODS, pod(f"waiting-{next(numbers)}")) for _ in range(missing)))


def forget_files(compiled, command):
    """Have the kernel forget what it keeps of bytecode, libraries and the program.

    What another process has mapped stays, such as C's library.
    """
    os.sync()  # What is not written yet stays, too.
    libraries = Path(sysconfig.get_path("platlib")).rglob("*.so*")
    for path in (*compiled.rglob("*.pyc"), *libraries, Path(command[0]).resolve()):
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def show(title, starts):
    table = Table(title, ["until", "CPU least s", "CPU p50 s", "CPU most s", "least s", "p50 s", "most s"])
    for number, deed in enumerate(DEEDS):
        cpu, wall = zip(*(start[number] for start in starts), strict=True)
        if None not in wall:
            figures = (*quantiles(cpu, 0.0, 0.5, 1.0), *quantiles(wall, 0.0, 0.5, 1.0))
            table.add(deed, *(f"{each:.2f}" for each in figures))
    table.show()


def show_memory(name, figures):
    table = Table(f"{name}'s memory once all is bound", ["at rest MiB", "high water MiB"])
    table.add(*(f"{each:.0f}" for each in figures))
    table.show()


def cluster(nodes, placed, *, real):
    """Nodes, and pods on them that are as large as real ones."""
    of_nodes = [{"apiVersion": "v1", "kind": "Node", **msgspec.json.decode(b)} for b in node_bytes(nodes)]
    yield from ((NODES, each) for each in of_nodes)
    names = [each["metadata"]["name"] for each in of_nodes]
    yield from ((PODS, realistic_pod(i, names[i % nodes], real=real)) for i in range(placed))


async def create_all(endpoint, *objects):
    transport = Transport(endpoint, max_connections=AT_ONCE)
    api, gate = Api(transport), asyncio.Semaphore(AT_ONCE)

    async def create(kind, document):
        async with gate:
            await api.create(kind, "default" if kind is PODS else "", encode(document))

    for first in range(0, len(objects), 1000):
        await asyncio.gather(*(create(*each) for each in objects[first : first + 1000]))
    await transport.aclose()


def realistic_pod(number, node_name, *, real=False):
    """A Deployment's pod as an API server returns it, about 3 KB with the managedFields of its writers.

    A real API server adds the latter itself.
    """
    app = f"app-{number % 500}"
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"{app}-5d8f7c9b4", "uid": f"rs-{app}"}
    token = f"kube-api-access-{number:05d}"
    token_mount = {
        "name": token,
        "readOnly": True,
        "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
    }
    probe = {"httpGet": {"path": "/healthz", "port": 8080, "scheme": "HTTP"}, "periodSeconds": 10}
    container = {
        "name": "main",
        "image": f"registry.example.com/team/{app}:v1.4.{number % 20}",
        "ports": [{"containerPort": 8080, "name": "http", "protocol": "TCP"}],
        "env": [{"name": f"SETTING_{i}", "value": f"value-of-{i}"} for i in range(6)],
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
        "readinessProbe": probe,
        "livenessProbe": probe,
        "volumeMounts": [token_mount, {"mountPath": "/etc/app", "name": "configuration"}],
    }
    volumes = [
        {"name": "configuration", "configMap": {"name": app, "defaultMode": 420}},
        {"name": token, "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}},
    ]
    document = pod(
        f"placed-{number}",
        nodeName=node_name,
        containers=[container],
        volumes=volumes,
        serviceAccountName="default",
    )
    document["spec"] |= {"restartPolicy": "Always", "dnsPolicy": "ClusterFirst", "tolerations": TOLERATIONS}
    document["metadata"] |= {
        "generateName": f"{app}-5d8f7c9b4-",
        "labels": {"app": app, "pod-template-hash": "5d8f7c9b4", "app.kubernetes.io/part-of": "shop"},
        "annotations": {"kubectl.kubernetes.io/restartedAt": "2026-01-02T03:04:05Z"},
        "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
    }
    if not real:
        managers = ("kube-controller-manager", "kubelet")
        document["metadata"]["managedFields"] = [managed(manager, document) for manager in managers]
        document["status"] = running(container)
    return document


def running(container):
    """The status that a kubelet writes of a pod of that container."""
    kinds = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    moment = "2026-01-02T03:04:05Z"
    held = container["resources"]["requests"]
    status = {
        "name": container["name"],
        "ready": True,
        "state": {"running": {"startedAt": moment}},
        "allocatedResources": held,
        "resources": container["resources"],
    }
    conditions = [{"type": kind, "status": "True", "lastTransitionTime": moment} for kind in kinds]
    return {"phase": "Running", "startTime": moment, "conditions": conditions, "containerStatuses": [status]}


def managed(manager, document):
    """The fields of a pod that a client manages, as the API server notes them."""
    fields = {f"f:{part}": fields_of(document[part]) for part in ("metadata", "spec")}
    about = {"manager": manager, "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1"}
    return {**about, "time": "2026-01-02T03:04:05Z", "fieldsV1": fields}


def fields_of(value):
    """The names of the fields, each with an f: before it, down to the second level."""
    if not isinstance(value, dict):
        return {}
    return {
        f"f:{name}": {f"f:{inner}": {} for inner in each} if isinstance(each, dict) else {}
        for name, each in value.items()
    }


async def one_start(folder, endpoint, command):
    """(CPU seconds, seconds) of each deed; None for what a scheduler does not say."""
    async with started(folder, endpoint, command) as (child, bound, began):
        return await deeds(child, endpoint.address.port, bound, began)


async def memory(folder, endpoint, command):
    """MiB at rest and at most."""
    async with started(folder, endpoint, command) as (child, bound, _):
        await bound
        await at_rest(child)
        return resident_mebibytes(child.pid), child.usage().peak_mebibytes


@asynccontextmanager
async def started(folder, endpoint, command):
    """A scheduler's process, what ends with its first binding, and when it began."""
    configuration = folder / "scheduler.yaml"
    configuration.write_text(CONFIGURATION.format(kubeconfig=folder / "kubeconfig"))
    transport = Transport(endpoint)
    since = await current_version(transport, WatchSource(PODS))
    flags = (f"--config={configuration}", "--bind-address=127.0.0.1", f"--secure-port={free_port()}")
    log = folder / "scheduler.log"
    environment = {
        "OTEL_TRACES_EXPORTER": "none",
        "PYTHONPYCACHEPREFIX": str(folder / "compiled"),
        "PYTHONDONTWRITEBYTECODE": "",
    }
    bound = asyncio.create_task(first_binding(transport, since))
    began = time.time()
    child = await Child.start(command[0], (*command, *flags), log, environment)
    try:
        yield child, bound, began
    finally:
        with suppress(ProcessLookupError):
            os.kill(child.pid, signal.SIGKILL)
        await child.stop()
        bound.cancel()
        await transport.aclose()


async def deeds(child, port, bound, began):
    """Look at the process until it has bound a pod."""
    asked, used = None, []
    async with asyncio.timeout(START_SECONDS):
        while not bound.done():
            child.check()
            now = child.usage().cpu_seconds, time.time() - began
            used.append(now)
            if asked is None and connected(child.pid, port):
                asked = now
            await asyncio.wait([bound], timeout=LOOK_SECONDS)
    await bound
    said = child.log.read_text()
    # A connection that is closed with its answer is too short for a look to be sure to see it.
    answered = at(moment(said, '"found API server" version'), used, began)
    listed = at(moment(said, "Sync completed"), used, began)
    return (
        answered or asked or used[-1],
        listed or (None, None),
        (child.usage().cpu_seconds, time.time() - began),
    )


def at(when, used, began):
    """CPU at the first look since then, and when it was; None where it was never."""
    if when is None:
        return None
    return next((cpu for cpu, seconds in used if began + seconds >= when), used[-1][0]), when - began


async def at_rest(child):
    """Return once the process does next to nothing, or has been busy for long."""
    deadline, used = time.monotonic() + REST_AFTER_SECONDS, -1.0
    while time.monotonic() < deadline:
        before, used = used, child.usage().cpu_seconds
        if used - before < QUIET_CPU * REST_SECONDS:
            return
        await asyncio.sleep(REST_SECONDS)


def resident_mebibytes(pid):
    """How much memory the process has now."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


async def first_binding(transport, since):
    """Return once a pod that waited is on a node."""
    watched = watch_lines(transport, WatchSource(PODS), since, BINDING_WATCH_SECONDS)
    async for lines in watched:
        for line in lines:
            if msgspec.json.decode(line)["object"].get("spec", {}).get("nodeName"):
                return


def connected(pid, port):
    """Whether the process has a connection to that port of this machine."""
    try:
        links = {str(each.readlink()) for each in Path(f"/proc/{pid}/fd").iterdir()}
        lines = Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]
    except OSError:
        return False
    rows = (line.split() for line in lines)
    return any(f"socket:[{row[9]}]" in links for row in rows if row[2].endswith(f":{port:04X}"))


def moment(said, text):
    """When a log in klog's format said so, in seconds since the epoch; None where it did not."""
    found = re.search(rf"^I(\d{{4}} [\d:]+)(\.\d+) .*{text}", said, re.MULTILINE)
    if found is None:
        return None
    year = time.localtime().tm_year
    return time.mktime(time.strptime(f"{year}{found[1]}", "%Y%m%d %H:%M:%S")) + float(found[2])
