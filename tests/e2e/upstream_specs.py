"""`python -m tests.e2e.upstream_specs --e2e-test PROGRAM`: upstream's specs (test/e2e) against Berth.

    etcd, kube-apiserver with RBAC, kube-controller-manager ── fake kubelets ── Berth as system:kube-scheduler

The programs are those in the folder that KUBEBUILDER_ASSETS names; e2e.test is the user's own, of the same
release. Without it the cluster stays up, and the command line for it is printed.
"""

import argparse
import asyncio
import json
import os
import re
import signal
import sys
import tempfile
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path
from xml.etree import ElementTree as ET

import click

from berth.client.api import Api
from berth.client.authentication.credentials import load_endpoint
from berth.client.resources import NODES
from berth.client.transport import Transport
from berth.client.wire import encode
from berth.demo.errors import DemoError
from berth.demo.processes import Child, program
from berth.demo.surface import Surface
from tests.unit.client.certificates import identity

SCHEDULER, MANAGER = "system:kube-scheduler", "system:kube-controller-manager"
READY_SECONDS = 120.0
FOCUS, SKIP = r"\[sig-scheduling\]", r"\[Serial\]|\[Slow\]|\[Disruptive\]|\[Flaky\]"
# No kubelet renews the nodes' leases: after a while this controller would take them for dead.
CONTROLLERS = "*,-node-lifecycle-controller"
CAPACITY = {"cpu": "8", "memory": "32Gi", "ephemeral-storage": "100Gi", "pods": "110"}
CONFIGURATION = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {{kubeconfig: {kubeconfig}}}
leaderElection: {{leaderElect: true}}
"""


def main():
    options = parse()
    try:
        sys.exit(asyncio.run(run(options)))
    except DemoError as error:
        sys.exit(f"Error: {error}")


def parse(arguments=None):
    """The options of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.e2e.upstream_specs", description=__doc__.partition("`: ")[2]
    )
    add = parser.add_argument
    add(
        "--e2e-test",
        type=Path,
        metavar="PROGRAM",
        help="upstream's e2e.test; without it the cluster stays up",
    )
    add("--nodes", type=int, default=3, help="nodes with fake kubelets")
    add("--focus", default=FOCUS, metavar="REGEX", help=f"specs to run; default {FOCUS}")
    add("--skip", default=SKIP, metavar="REGEX", help=f"specs to leave out; default {SKIP}")
    add("--folder", type=Path, metavar="DIR", help="keep logs, kubeconfigs and the report here")
    add("--timeout", default="1h", metavar="DURATION", help="how long all specs may take")
    return parser.parse_args(arguments)


async def run(options):
    """Start everything and run the specs; 0 where none failed. Raises: DemoError."""
    async with AsyncExitStack() as stack:
        scratch = stack.enter_context(tempfile.TemporaryDirectory(prefix="berth-specs-"))
        folder = (options.folder or Path(scratch)).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        await start_all(stack, folder, options.nodes)
        command = specs_command(options, folder)
        if options.e2e_test is None:
            click.echo(f"The cluster is up until it is interrupted. Run: {' '.join(command)}")
            await interrupted()
            return 0
        specs = await asyncio.create_subprocess_exec(*command, start_new_session=True)
        try:
            code = await specs.wait()
        finally:
            if specs.returncode is None:
                os.killpg(specs.pid, signal.SIGTERM)
        show(folder / "report")
        return code


async def start_all(stack, folder, nodes):
    """The control plane, the nodes and Berth, each ended with the stack."""
    authority = write_authority(folder)
    admin = folder / "admin.kubeconfig"
    admin.unlink(missing_ok=True)
    server = (
        program("berth"),
        "sandbox",
        "up",
        "--real",
        "--authorization-mode=RBAC",
        f"--kubeconfig={admin}",
    )
    child = await start(
        stack, folder, "sandbox", (*server, f"--api-server-flag=--client-ca-file={folder}/ca.crt")
    )
    await child.wait_for(admin, READY_SECONDS)
    for user in (SCHEDULER, MANAGER):
        write_user(folder, admin, user, authority)
    await create_nodes(admin, nodes)
    manager = kubeconfig_of(folder, MANAGER)
    flags = (
        "--leader-elect=false",
        "--secure-port=0",
        "--use-service-account-credentials",
        f"--controllers={CONTROLLERS}",
    )
    await start(
        stack,
        folder,
        "kube-controller-manager",
        (str(controller_manager()), f"--kubeconfig={manager}", *flags),
    )
    await start_berth(stack, folder)


def controller_manager():
    """The program beside kube-apiserver. Raises: DemoError."""
    folder = Path(os.environ.get("KUBEBUILDER_ASSETS", "/usr/local/kubebuilder/bin"))
    found = folder / "kube-controller-manager"
    if not os.access(found, os.X_OK):
        raise DemoError(
            f"no kube-controller-manager in {folder}: set KUBEBUILDER_ASSETS to a folder that has it"
        )
    return found


async def start(stack, folder, name, command):
    """A process that ends with the stack."""
    child = await Child.start(name, command, folder / f"{name}.log")
    stack.push_async_callback(child.stop)
    return child


async def start_berth(stack, folder):
    """Berth, in kube-scheduler's place: its user, its lease, its profile."""
    kubeconfig = kubeconfig_of(folder, SCHEDULER)
    configuration, surface = folder / "scheduler.yaml", Surface.free()
    configuration.write_text(CONFIGURATION.format(kubeconfig=kubeconfig), encoding="utf-8")
    command = (
        program("berth"),
        "scheduler",
        f"--config={configuration}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--bind-address=127.0.0.1",
        f"--secure-port={surface.port}",
    )
    await surface.wait_ready(await start(stack, folder, "berth", command), READY_SECONDS)


def write_authority(folder):
    """The authority of clients' certificates, which the API server reads."""
    certificate, _, authority = identity("specs-ca")
    (folder / "ca.crt").write_bytes(certificate)
    return authority


def write_user(folder, admin, user, authority):
    """A kubeconfig of a user that its certificate names."""
    certificate, key, _ = identity(user, issuer=authority)
    name = kubeconfig_of(folder, user).stem
    files = {"client-certificate": certificate, "client-key": key}
    for kind, pem in files.items():
        (folder / f"{name}.{kind}").write_bytes(pem)
    document = json.loads(admin.read_text(encoding="utf-8"))
    document["users"][0]["user"] = {kind: str(folder / f"{name}.{kind}") for kind in files}
    kubeconfig_of(folder, user).write_text(json.dumps(document), encoding="utf-8")


def kubeconfig_of(folder, user):
    return folder / f"{user.rpartition(':')[2]}.kubeconfig"


async def create_nodes(kubeconfig, count):
    """Nodes that are ready, in three zones."""
    transport = Transport(load_endpoint(kubeconfig=str(kubeconfig)))
    try:
        for i in range(count):
            await Api(transport).create(NODES, "", encode(ready_node(f"worker-{i}", f"zone-{i % 3}", i)))
    finally:
        await transport.aclose()


def ready_node(name, zone, number):
    """What a kubelet would have registered."""
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "topology.kubernetes.io/zone": zone,
        "topology.kubernetes.io/region": "region",
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {
            "capacity": CAPACITY,
            "allocatable": CAPACITY,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
            "addresses": [
                {"type": "InternalIP", "address": f"10.1.0.{number + 1}"},
                {"type": "Hostname", "address": name},
            ],
        },
    }


def specs_command(options, folder):
    """The command line of e2e.test on this cluster."""
    return (
        str(options.e2e_test or "e2e.test"),
        f"--kubeconfig={folder / 'admin.kubeconfig'}",
        "--provider=skeleton",
        f"--report-dir={folder / 'report'}",
        f"--ginkgo.focus={options.focus}",
        f"--ginkgo.skip={options.skip}",
        f"--ginkgo.timeout={options.timeout}",
    )


async def interrupted():
    """Wait for an interrupt."""
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await stop.wait()


def show(report):
    """A line for each spec that ran, and how many there were of each outcome."""
    found = [each for path in sorted(report.glob("junit*.xml")) for each in outcomes(path)]
    for outcome, name in sorted(found):
        click.echo(f"{outcome}: {name}")
    counts = Counter(outcome for outcome, _ in found)
    click.echo(", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items())) or "no spec ran")


def outcomes(path):
    """(passed or failed, name) of each spec in a JUnit report, those that were left out not among them."""
    for case in ET.parse(path).iter("testcase"):
        name = re.sub(r"^\[It\] ", "", case.get("name", ""))
        if case.find("skipped") is None and case.get("name", "").startswith("[It]"):
            failed = case.find("failure") is not None or case.find("error") is not None
            yield "failed" if failed else "passed", name


if __name__ == "__main__":
    main()
