"""Reserve, Unreserve and PreBind of VolumeBinding."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from berth.config.plugin_args import VolumeBindingArgs
from berth.framework.attempts.cycle_budget import CpuTime, CycleMeter, OverBudgetError
from berth.framework.attempts.cycle_state import CycleState
from berth.framework.cluster_event import QueueingHint
from berth.framework.status import PluginError
from berth.objects.label_selector import LabelSelector
from berth.objects.volumes.storage import (
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    SELECTED_NODE,
    ClaimReference,
    TopologyRequirement,
    TopologyTerm,
    annotated,
)
from berth.plugins.volume_binding import VolumeBinding
from berth.plugins.volume_binding.plugin import PodClaimVolumes
from berth.telemetry.metrics.registry import SchedulerMetrics
from berth.testing.builders import make_node, make_pod
from berth.testing.clusters import table
from berth.testing.handles import RecordingVolumeWriter, make_handle, make_plugin
from berth.testing.storage import (
    claim_volume,
    listers_with,
    make_capacity,
    make_claim,
    make_class,
    make_csi_driver,
    make_csi_node,
    make_volume,
)
from tests.failures.reporting import reports

DRIVER = "csi.example.com"
NODES = [make_node("n0", labels={"host": "n0"}), make_node("n1", labels={"host": "n1"})]
POD = make_pod(volumes=(claim_volume("disk"), claim_volume("new")), node_name="n0")


class Arrived:
    """A value that is there at once."""

    def set(self, value):
        self.value = value
        return True

    def __await__(self):
        yield from ()


class Hurrying:
    """A background on which time passes at once; `meanwhile` is what happens during each pause."""

    def __init__(self, clock, meanwhile):
        self.clock, self.meanwhile = clock, list(meanwhile)

    def outcome(self):
        return Arrived()

    def call_later(self, seconds, call: Callable[[], None]):
        self.clock.seconds += seconds
        if self.meanwhile:
            self.meanwhile.pop(0)()
        call()
        return self

    def cancel(self):
        pass


class Scene:
    """A plugin that has reserved a free volume for one claim and a new one for another."""

    def __init__(self, *, timeout=600, meanwhile=(), volume=None, writer=None, known=lambda pod: pod):
        self.claims = [make_claim("disk"), make_claim("new", storage_class="made")]
        self.volume = volume or make_volume("v0", near={"host": ["n0"]})
        classes = [make_class(), make_class("made", provisioner=DRIVER)]
        self.listers = listers_with(*classes, *self.claims, self.volume)
        self.nodes, self.writer = table(NODES), writer or RecordingVolumeWriter()
        self.handle = make_handle(self.nodes, listers=self.listers, volume_writer=self.writer, known=known)
        self.handle.background = Hurrying(self.handle.clock, [getattr(self, step) for step in meanwhile])
        self.plugin = VolumeBinding(VolumeBindingArgs(bind_timeout_seconds=timeout), self.handle)
        self.state = CycleState()
        assert self.plugin.pre_filter(self.state, POD, self.nodes).status.ok
        assert [0, 2] == self.plugin.filter(self.state, POD, self.nodes).tolist()
        self.reserved = self.plugin.reserve(self.state, POD, "n0")

    def latest(self):
        return self.listers.assumed_volumes.get("v0"), self.listers.assumed_claims.get("new", "default")

    async def pre_bind(self):
        status = await self.plugin.pre_bind(self.state, POD, "n0")
        return status.message

    # What the cluster does meanwhile.

    def nothing(self):
        pass

    def shown(self):
        """The watch brings what was written."""
        for volume in self.writer.volumes:
            self.listers.persistent_volumes.put(self._next(volume))
        for claim in self.writer.claims:
            self.listers.persistent_volume_claims.put(self._next(claim))

    def bound(self):
        self.shown()
        for name, volume in (("disk", "v0"), ("new", "made-for-new")):
            self._bind(name, volume)
        self.listers.persistent_volumes.put(make_volume("made-for-new", version="3"))

    def half_bound(self):
        self.shown()
        self._bind("disk", "v0")

    def made_on_another_node(self):
        self.bound()
        self.listers.persistent_volumes.put(make_volume("made-for-new", near={"host": ["n1"]}))

    def reset(self):
        self.shown()
        volume = self.listers.persistent_volumes.get("v0")
        spec = replace(volume.spec, claim_ref=None)
        self.listers.persistent_volumes.put(self._next(replace(volume, spec=spec)))

    def refused(self):
        self._note({"other": "x"})

    def wiped(self):
        self._note({})

    def _note(self, annotations):
        self.half_bound()
        claim = self.listers.persistent_volume_claims.get("new", "default")
        metadata = replace(claim.metadata, annotations=annotations)
        self.listers.persistent_volume_claims.put(self._next(replace(claim, metadata=metadata)))

    def _bind(self, name, volume):
        claim = self.listers.persistent_volume_claims.get(name, "default")
        metadata = annotated(claim.metadata, BIND_COMPLETED, "yes")
        spec = replace(claim.spec, volume_name=volume)
        self.listers.persistent_volume_claims.put(self._next(replace(claim, metadata=metadata, spec=spec)))

    def _next(self, obj):
        version = str(int(obj.metadata.resource_version) + 1)
        return replace(obj, metadata=replace(obj.metadata, resource_version=version))


def test_reserve():
    """The volume is assumed kept for the claim, and the node selected for the other; both can be undone."""
    scene = Scene()
    volume, claim = scene.latest()

    assert scene.reserved.ok
    assert ("default", "disk", "claim-disk") == (
        volume.spec.claim_ref.namespace,
        volume.spec.claim_ref.name,
        volume.spec.claim_ref.uid,
    )
    assert "yes" == volume.metadata.annotations[BOUND_BY_CONTROLLER]
    assert "n0" == claim.metadata.annotations[SELECTED_NODE]
    for _ in range(2):
        scene.plugin.unreserve(scene.state, POD, "n0")
        assert (scene.volume, scene.claims[1]) == scene.latest()


def test_reserved_volumes_are_taken():
    """The next pod does not find a volume that is assumed taken, until it is given up."""
    scene = Scene()
    other = make_pod("other", volumes=(claim_volume("disk2"),))
    scene.listers.persistent_volume_claims.put(make_claim("disk2"))

    def codes():
        state = CycleState()
        scene.plugin.pre_filter(state, other, scene.nodes)
        return scene.plugin.filter(state, other, scene.nodes).tolist()

    assert [2, 2] == codes()
    scene.plugin.unreserve(scene.state, POD, "n0")
    assert [0, 2] == codes()


def test_a_volume_that_changed():
    """A volume that is not any more what Filter saw is not taken, and neither is anything else."""
    scene = Scene()
    scene.plugin.unreserve(scene.state, POD, "n0")
    state = CycleState()
    scene.plugin.pre_filter(state, POD, scene.nodes)
    scene.plugin.filter(state, POD, scene.nodes)
    changed = make_volume("v0", version="7")
    scene.listers.persistent_volumes.put(changed)

    assert "Error" == str(scene.plugin.reserve(state, POD, "n0").code)
    assert (changed, scene.claims[1]) == scene.latest()


@pytest.mark.parametrize("uid", ["", "claim-disk"])
def test_a_volume_kept_by_a_user(uid):
    """A volume that was kept for the claim before does not get the controller's mark; a full one stays."""
    volume = make_volume("v0", near={"host": ["n0"]})
    ref = ClaimReference(namespace="default", name="disk", uid=uid)
    volume = replace(volume, spec=replace(volume.spec, claim_ref=ref))
    taken, _ = Scene(volume=volume).latest()

    assert "claim-disk" == taken.spec.claim_ref.uid
    assert BOUND_BY_CONTROLLER not in taken.metadata.annotations
    assert bool(uid) == (taken is volume)


def test_pre_flight():
    """There is work only where something is to be bound, and it may run beside others."""
    scene = Scene()
    result = scene.plugin.pre_bind_pre_flight(scene.state, POD, "n0")
    assert (True, True) == (result.status.ok, result.allow_parallel)
    bound = make_plugin(
        VolumeBinding, listers=listers_with(make_claim("c0", volume_name="v0"), make_volume())
    )
    pod, state = make_pod(volumes=(claim_volume("c0"),)), CycleState()
    bound.pre_filter(state, pod, table(NODES))

    assert bound.reserve(state, pod, "n0").ok
    assert bound.pre_bind_pre_flight(state, pod, "n0").status.skip
    assert bound.pre_bind_pre_flight(CycleState(), make_pod(), "n0").status.skip


async def test_pre_bind():
    """Volumes and claims are written once, and the pod waits until the watch shows that all are bound."""
    scene = Scene(meanwhile=["nothing", "shown", "half_bound", "bound"])

    assert "" == await scene.pre_bind()
    assert ["v0"] == [volume.name for volume in scene.writer.volumes]
    assert ["new"] == [claim.name for claim in scene.writer.claims]
    assert 4.0 == scene.handle.clock.seconds


async def test_pre_bind_without_a_pre_flight():
    """Before 1.34, and without NominatedNodeNameForExpectation, pods that need nothing are not skipped."""
    plugin = make_plugin(VolumeBinding, listers=listers_with())

    assert (await plugin.pre_bind(CycleState(), make_pod(), "n0")).ok


@reports(
    "pre-bind-fails",
    condition="no PV controller: `context deadline exceeded` after bindTimeoutSeconds",
)
@pytest.mark.parametrize(
    ("meanwhile", "text"),
    [
        (["nothing"], "context deadline exceeded"),
        (["reset"], 'ClaimRef got reset for pv "v0"'),
        (["refused"], 'provisioning failed for PVC "new"'),
        (["wiped"], 'selectedNode annotation reset for PVC "new"'),
        (
            ["made_on_another_node"],
            'pv "made-for-new" node affinity doesn\'t match node "n0": no matching NodeSelectorTerms',
        ),
    ],
)
async def test_pre_bind_gives_up(meanwhile, text):
    """A claim that is not going to be bound, or not in time, ends the attempt."""
    assert f"binding volumes: {text}" == await Scene(meanwhile=meanwhile, timeout=5).pre_bind()


async def test_the_pod_is_gone():
    """A deleted pod waits for nothing."""
    scene = Scene(known=lambda _: None)

    assert 'binding volumes: pod does not exist any more: pod "p0" not found' == await scene.pre_bind()


async def test_failed_writes():
    """A write that fails ends the attempt; what was not written can be given up."""
    scene = Scene(writer=RecordingVolumeWriter(failure=ValueError("conflict")))

    assert "binding volumes: conflict" == await scene.pre_bind()
    scene.plugin.unreserve(scene.state, POD, "n0")
    assert (scene.volume, scene.claims[1]) == scene.latest()


def lost_class(scene):
    """A class goes between PreFilter and Filter."""
    state = CycleState()
    scene.plugin.pre_filter(state, POD, scene.nodes)
    scene.listers.storage_classes.remove(make_class("made", provisioner=DRIVER))
    with pytest.raises(PluginError):
        scene.plugin.filter(state, POD, scene.nodes)


class Hours:
    """A clock on which each look takes long."""

    def __init__(self):
        self.seconds = 0.0

    def monotonic(self):
        self.seconds += 3600.0
        return self.seconds

    def cpu(self):
        return self.seconds


def test_a_reserve_that_goes_over_budget_gives_up_what_it_assumed():
    """Claims are assumed in steps: a pod may have thousands, and the cycle may end between two of them."""
    scene = Scene()
    scene.plugin.unreserve(scene.state, POD, "n0")
    before, state = scene.latest(), CycleState(CycleMeter(1.0, CpuTime(Hours()), breathe))
    scene.plugin.pre_filter(scene.state, POD, scene.nodes)
    scene.plugin.filter(scene.state, POD, scene.nodes)
    state.write(PodClaimVolumes, scene.state.read(PodClaimVolumes))
    state.meter.resume()
    with pytest.raises(OverBudgetError, match="VolumeBinding"):
        scene.plugin.reserve(state, POD, "n0")
    taken = scene.latest()
    scene.plugin.unreserve(state, POD, "n0")

    assert before != taken
    assert before == scene.latest()


async def breathe():
    """Nothing else has a turn."""


def changed_volume(scene):
    """A volume changes between Filter and Reserve."""
    state = CycleState()
    scene.plugin.pre_filter(state, POD, scene.nodes)
    scene.plugin.filter(state, POD, scene.nodes)
    scene.listers.persistent_volumes.put(make_volume("v0", version="7"))
    assert not scene.plugin.reserve(state, POD, "n0").ok


@pytest.mark.parametrize(("fails", "stage"), [(lost_class, "predicate"), (changed_volume, "assume")])
def test_errors_of_a_cycle_are_counted(fails, stage):
    """An error of volume scheduling counts under the stage that it broke in."""
    scene, metrics = Scene(), SchedulerMetrics()
    scene.handle.claim_metrics = metrics.claims
    scene.plugin.unreserve(scene.state, POD, "n0")

    fails(scene)

    assert {(stage,): 1} == errors_by_stage(metrics)


async def test_errors_of_bindings_are_counted():
    """A binding of volumes that fails counts as well."""
    scene, metrics = Scene(writer=RecordingVolumeWriter(failure=ValueError("conflict"))), SchedulerMetrics()
    scene.handle.claim_metrics = metrics.claims

    await scene.pre_bind()

    assert {("bind",): 1} == errors_by_stage(metrics)


def errors_by_stage(metrics):
    (family,) = (f for f in metrics.registry.collect() if f.name == "scheduler_volume_scheduling_stage_error")
    return {tuple(sample.labels.values()): sample.value for sample in family.samples}


def test_hints():
    """Whatever brings a volume, a claim or storage, or moves a node, is worth a try."""
    registered = make_plugin(VolumeBinding).events_to_register()
    on_class, on_claim, on_volume, on_node, on_csi_node, on_driver, on_driver_gone, on_capacity = registered
    queue, skip = QueueingHint.QUEUE, QueueingHint.SKIP
    places = make_class(allowed_topologies=(TopologyTerm((TopologyRequirement("zone", ("a",)),)),))
    inline = make_pod(volumes=({"name": "v", "csi": {"driver": DRIVER}},))
    tracks, ignores = make_csi_driver(DRIVER, storage_capacity=True), make_csi_driver(DRIVER)

    def capacity(amount, **fields):
        return make_capacity("x", "made", amount, node_topology=LabelSelector(), **fields)

    assert on_volume.hint is on_node.hint is None
    assert [queue, skip, queue] == [
        on_class.hint(POD, None, places),
        on_class.hint(POD, places, places),
        on_class.hint(POD, make_class(), places),
    ]
    assert [queue, skip, skip] == [
        on_claim.hint(POD, None, make_claim("disk")),
        on_claim.hint(POD, None, make_claim("x")),
        on_claim.hint(POD, None, make_claim("disk", namespace="b")),
    ]
    plain, migrated = make_csi_node("n0", {}), make_csi_node("n0", {}, migrated="x")
    assert [queue, queue, skip] == [
        on_csi_node.hint(POD, None, plain),
        on_csi_node.hint(POD, plain, migrated),
        on_csi_node.hint(POD, migrated, migrated),
    ]
    assert [queue, skip, queue, queue, skip] == [
        on_driver.hint(inline, tracks, ignores),
        on_driver.hint(inline, ignores, tracks),
        on_driver.hint(POD, tracks, ignores),
        on_driver_gone.hint(POD, tracks, None),
        on_driver.hint(make_pod(), tracks, ignores),
    ]
    assert [queue, queue, skip, skip, queue] == [
        on_capacity.hint(POD, None, capacity(None)),
        on_capacity.hint(POD, capacity("1Gi"), capacity("2Gi")),
        on_capacity.hint(POD, capacity("2Gi"), capacity("2Gi")),
        on_capacity.hint(POD, capacity("2Gi"), capacity(None)),
        on_capacity.hint(POD, capacity(None), capacity("1Gi", maximum_volume_size="1Mi")),
    ]
