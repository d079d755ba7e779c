"""The real process before an API server of each release, with every gate of its table set the other way."""

import asyncio

import pytest

from berth.config.feature_gates import gate_spec, is_known
from berth.config.releases.gate_history import HISTORY, NOT_COVERED
from berth.config.releases.release import RELEASES, effective, shown
from berth.demo.processes import Child, program
from berth.demo.surface import Surface
from berth.sandbox import SandboxOptions, serve
from tests.failures.reporting import reports
from tests.suite import PATIENCE_SECONDS

pytestmark = pytest.mark.e2e

STAGES = ("AllAlpha", "AllBeta")
of_all_releases = pytest.mark.parametrize("release", RELEASES, ids=shown)


def gates(release, *, locked, default=None):
    """The release's gates of that kind."""
    specs = {
        name: gate_spec(name, effective(release))
        for name in HISTORY
        if is_known(name, release) and name not in STAGES
    }
    return [name for name, spec in specs.items() if spec.locked == locked and default in {None, spec.default}]


def command(kubeconfig, *flags):
    """The scheduler with these flags."""
    more = ["--leader-elect=false", "--bind-address=127.0.0.1", "--authorization-always-allow-paths=/readyz"]
    return [program("berth"), "scheduler", f"--kubeconfig={kubeconfig}", *more, *flags]


async def says(folder, release, *flags):
    """What the process says as it ends by itself, and its exit status."""
    async with await serve(SandboxOptions(release=release)) as sandbox:
        sandbox.write_kubeconfig(folder / "kubeconfig")
        process = await asyncio.create_subprocess_exec(
            *command(folder / "kubeconfig", "--secure-port=0", *flags),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        async with asyncio.timeout(PATIENCE_SECONDS):
            said, _ = await process.communicate()
    return said.decode(), process.returncode


async def started(folder, release, *flags):
    """The log of a process that got as far as being ready."""
    surface, log = Surface.free(), folder / "log"
    async with await serve(SandboxOptions(release=release)) as sandbox:
        sandbox.write_kubeconfig(folder / "kubeconfig")
        child = await Child.start(
            "scheduler", command(folder / "kubeconfig", f"--secure-port={surface.port}", *flags), log
        )
        try:
            await surface.wait_ready(child, PATIENCE_SECONDS)
        finally:
            await child.stop()
    return log.read_text()


@reports("gate-without-effect", log="`gate without its effect`, with what is off")
@of_all_releases
@pytest.mark.parametrize("default", [False, True], ids=["those that are off", "those that are on"])
async def test_gates_that_may_be_changed(tmp_path, release, default):
    """All of them set to the other value, or to their own, are taken, and the release is the server's."""
    changed = ",".join(
        f"{name}={str(not default).lower()}" for name in gates(release, locked=False, default=default)
    )
    kept = ",".join(f"{name}={str(default).lower()}" for name in gates(release, locked=True, default=default))

    said = await started(tmp_path, release, f"--feature-gates={changed}", f"--feature-gates={kept}")

    assert f'"decides as kube-scheduler" release="{shown(release)}"' in said
    uncovered = [name for name in NOT_COVERED if is_known(name, release) and f"{name}=true" in changed + kept]
    assert len(uncovered) == said.count('"gate without its effect" note="feature gate ')


@of_all_releases
async def test_gates_that_are_locked(tmp_path, release):
    """Each one set to the other value is named, in upstream's words, and the process ends."""
    locked = {name: gate_spec(name, effective(release)).default for name in gates(release, locked=True)}
    wanted = ",".join(f"{name}={str(not default).lower()}" for name, default in locked.items())

    said, status = await says(tmp_path, release, f"--feature-gates={wanted}")

    assert status
    for name, default in locked.items():
        words = {True: "true", False: "false"}
        assert (
            f"cannot set feature gate {name} to {words[not default]}, feature is locked to {words[default]}"
            in said
        )


UNKNOWN = [
    ((1, 36), "CompositePodGroup"),
    ((1, 37), "GangScheduling"),
    ((1, 37), "WorkloadAwarePreemption"),
    ((1, 37), "SidecarContainers"),
    ((1, 38), "DynamicResourceAllocation"),
    ((1, 38), "MatchLabelKeysInPodAffinity"),
    ((1, 38), "PodSchedulingReadiness"),
]


@pytest.mark.parametrize(("release", "gate"), UNKNOWN)
async def test_gates_that_the_release_does_not_have(tmp_path, release, gate):
    """The process ends with upstream's words, also where the gate is set to what is so anyway."""
    said, status = await says(tmp_path, release, f"--feature-gates={gate}=false")

    assert status
    assert f"unrecognized feature gate: {gate}" in said


DISABLED = "depends on features that are disabled"


@pytest.mark.parametrize(
    ("release", "flags", "words"),
    [
        (
            (1, 37),
            "CompositePodGroup=true",
            f"{DISABLED}: [GenericWorkload TopologyAwareWorkloadScheduling]",
        ),
        ((1, 37), "PodGroupPreemptionPolicy=true", f"{DISABLED}: [GenericWorkload]"),
        ((1, 37), "DRAWorkloadResourceClaims=true", f"{DISABLED}: [GenericWorkload]"),
        ((1, 36), "TopologyAwareWorkloadScheduling=true", f"{DISABLED}: [GenericWorkload]"),
        (
            (1, 37),
            "DRADeviceCompatibilityGroups=true,DRAPartitionableDevices=false",
            f"{DISABLED}: [DRAPartitionableDevices]",
        ),
        (
            (1, 36),
            "DRAResourceClaimDeviceStatus=false",
            f"DRADeviceBindingConditions is enabled, but {DISABLED}: [DRAResourceClaimDeviceStatus]",
        ),
        (
            (1, 37),
            "DRADeviceTaints=false",
            f"DRADeviceTaintRules is enabled, but {DISABLED}: [DRADeviceTaints]",
        ),
    ],
)
async def test_gates_that_need_others(tmp_path, release, flags, words):
    """A gate without those it needs ends the process, which names them."""
    said, status = await says(tmp_path, release, f"--feature-gates={flags}")

    assert status
    assert words in said


async def test_an_emulated_release(tmp_path):
    """A gate that came later cannot be on; one that the binary removed stays removed."""
    said, status = await says(
        tmp_path, (1, 37), "--emulated-version=1.36", "--feature-gates=CompositePodGroup=true"
    )
    assert status
    assert "feature is PreAlpha at emulated version 1.36, min compatibility version 1.35" in said

    said, status = await says(
        tmp_path, (1, 37), "--emulated-version=1.36", "--feature-gates=GangScheduling=true"
    )
    assert status
    assert "unrecognized feature gate: GangScheduling" in said


async def test_the_default_of_an_emulated_release(tmp_path):
    """The log says what is emulated."""
    said = await started(tmp_path, (1, 37), "--emulated-version=1.36")

    assert '"decides as kube-scheduler" release="1.37" emulated="1.36"' in said
