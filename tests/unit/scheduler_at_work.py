"""A whole scheduler in this process, at work on a real sandbox over HTTP."""

import asyncio
import json
from contextlib import asynccontextmanager

from berth.config import load
from berth.config.feature_gates import FeatureGates
from berth.config.out_of_tree.sidecars import SidecarSpec, catalogue_of
from berth.config.releases.release import DEFAULT, effective
from berth.sandbox import SandboxOptions, serve
from berth.scheduler.process import run
from berth.scheduler.process_options import ProcessOptions
from tests.suite import PATIENCE_SECONDS

CONFIGURATION = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {{kubeconfig: {kubeconfig}, qps: -1}}
leaderElection: {{leaderElect: false}}
podInitialBackoffSeconds: 1
"""
SIDECAR_PROFILE = """
profiles:
- schedulerName: default-scheduler
  plugins: {{multiPoint: {{enabled: [{names}], disabled: [{without}]}}}}
"""


def node(name, **labels):
    """A node with four cores."""
    resources = {"cpu": "4", "memory": "64Gi", "pods": "20"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"capacity": resources, "allocatable": resources},
    }


@asynccontextmanager
async def scheduling(
    kubeconfig,
    *documents,
    options=None,
    sidecars=None,
    without=(),
    last=(),
    arguments=None,
    extenders=(),
    profiles=(),
    gates=None,
    unserved=(),
    release=DEFAULT,
    **process_options,
):
    """A scheduler at work on a sandbox with these objects; gives the sandbox and the scheduler's core.

    The sandbox's kubeconfig stands in the file of that path. Sidecars are addresses by name, and each gets
    the arguments; where there are some, the profile is without those other plugins, but for those that come
    last. Extenders and profiles are entries of the configuration, the latter where there are no sidecars;
    gates are features by name. The server does not have the kinds that are unserved, and is of the followed
    release. Further keywords are the process's own options.
    """
    specs = tuple(SidecarSpec(name, address, args=arguments) for name, address in (sidecars or {}).items())
    text = f"{CONFIGURATION.format(kubeconfig=kubeconfig)}extenders: {json.dumps(extenders)}\n"
    if specs:
        text += SIDECAR_PROFILE.format(
            names=_list([*(spec.name for spec in specs), *last]), without=_list(without)
        )
    elif profiles:
        text += f"profiles: {json.dumps(profiles)}\n"
    async with await serve(options or SandboxOptions(release=release)) as sandbox:
        for kind in unserved:
            catalogue = sandbox.api.catalogue
            catalogue.remove(catalogue.get(kind.group, kind.version, kind.plural))
        sandbox.load(documents)
        sandbox.write_kubeconfig(kubeconfig)
        ready, stop = asyncio.get_running_loop().create_future(), asyncio.Event()
        loaded = load(
            text, gates=FeatureGates(gates or {}, effective(release)), out_of_tree=catalogue_of(specs)
        )
        settings = ProcessOptions(loaded, sidecars=specs, seed=1, **process_options)
        process = asyncio.create_task(run(settings, stop, on_ready=ready.set_result))
        try:
            await eventually(lambda: process.done() or ready.done())
            assert ready.done(), process.result()
            yield sandbox, ready.result()
            stop.set()
            async with asyncio.timeout(PATIENCE_SECONDS):
                await process
        finally:
            process.cancel()
            await asyncio.gather(process, return_exceptions=True)


def _list(names):
    """Plugins as a plugin set has them."""
    return ", ".join(f"{{name: {name}}}" for name in names)


async def eventually(claim, seconds=PATIENCE_SECONDS):
    """Let client and server talk until the claim holds."""
    async with asyncio.timeout(seconds):
        while not claim():  # noqa: ASYNC110 - looks into the server's state, which has no event
            await asyncio.sleep(0.01)
