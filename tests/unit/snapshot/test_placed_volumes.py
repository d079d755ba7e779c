"""Volumes and declared features follow pods and nodes; journals tell what changed."""

from itertools import chain

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from berth.cache.cache import Cache
from berth.objects.pods.pod_volumes import ClaimUse, Disk
from berth.objects.volumes.csi_migration import CsiVolume
from berth.snapshot.journal import Journal
from berth.snapshot.pod_info import PodInfo
from berth.snapshot.snapshot import Snapshot
from berth.testing.builders import make_node, make_pod
from berth.testing.storage import claim_volume

EBS = {"name": "d", "awsElasticBlockStore": {"volumeID": "vol-1"}}
RBD = {"name": "r", "rbd": {"monitors": ["m1", "m2"], "image": "i", "pool": "p", "readOnly": True}}
SCRATCH = {"name": "s", "ephemeral": {}}
PLAIN = {"name": "e", "emptyDir": {}}
NODES = ("n0", "n1", "n2")
FEATURES = ("X", "Y")


def test_what_counts_of_a_pod():
    """Claims, disks, and volumes that drivers took over count, each once."""
    pod = make_pod(volumes=(EBS, claim_volume("a"), claim_volume("a"), SCRATCH, RBD, PLAIN))

    assert {
        Disk("aws", ("vol-1",), read_only=False),
        CsiVolume("ebs.csi.aws.com", "vol-1"),
        ClaimUse("default", "a"),
        ClaimUse("default", "p0-s", "default-p0", "p0"),
        Disk("rbd", ("p", "i"), read_only=True),
    } == set(PodInfo(pod).volumes)
    assert 5 == len(PodInfo(pod).volumes)


def volumes_of(snapshot):
    return {
        v: {snapshot.names[row]: n for row, n in snapshot.volumes.rows(v).items()} for v in snapshot.volumes
    }


def features_of(snapshot):
    masks = {feature: snapshot.declares(feature) for feature in FEATURES}
    return {
        feature: {name for name, has in zip(snapshot.names, mask, strict=True) if has}
        for feature, mask in masks.items()
        if mask is not None and mask.any()
    }


steps = st.lists(
    st.one_of(
        st.tuples(
            st.just("pod"),
            st.integers(0, 4),
            st.sampled_from([EBS, RBD, PLAIN, SCRATCH]),
            st.sampled_from(NODES),
        ),
        st.tuples(st.just("node"), st.sampled_from(NODES), st.sampled_from([(), ("X",), ("X", "Y")])),
        st.tuples(st.just("look")),
    ),
    max_size=20,
)


@settings(deadline=None)
@given(steps)
def test_kept_up_to_date(steps):
    """After any changes the snapshot says what one built from nothing says, and named all that changed."""
    cache, snapshot, pods, nodes = Cache(), Snapshot(), {}, set()
    position, before = 0, {}
    for step in [*steps, ("look",)]:
        match step:
            case "pod", number, _, _ if number in pods:
                cache.remove_pod(pods.pop(number))
            case "pod", number, volume, node:
                pods[number] = make_pod(f"p{number}", volumes=(volume,), node_name=node)
                cache.add_pod(pods[number])
            case "node", name, features:
                node = make_node(name)
                node = replace(node, status=replace(node.status, declared_features=features))
                (cache.remove_node if name in nodes else cache.add_node)(node)
                nodes ^= {name}
            case _:
                cache.update_snapshot(snapshot)
                fresh, after = cache.fresh_snapshot(), volumes_of(snapshot)
                assert volumes_of(fresh) == after
                assert features_of(fresh) == features_of(snapshot)
                changed = {v for v in {*before, *after} if before.get(v) != after.get(v)}
                noted = [change.volumes for change in snapshot.volumes.changes.since(position)]
                assert changed <= {*chain.from_iterable(noted)}
                position, before = snapshot.volumes.changes.end, after


def test_journal():
    """Each reader gets what came since its place, unless that is too long ago."""
    journal = Journal(kept=3)
    for change in "abcd":
        journal.note(change)

    assert ("c", "d") == journal.since(2)
    assert () == journal.since(4)
    assert ("b", "c", "d") == journal.since(1)
    assert journal.since(0) is None
