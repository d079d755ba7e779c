"""Shards that must not be: refused with the field and a remedy; and a lease that another program holds."""

import pytest
import yaml

from berth.config.command_line import parse_flags, read_settings
from berth.config.errors import ShardListError
from berth.config.shards import Shard
from tests.unit.config.files import file
from tests.unit.scheduler.test_process import LEASES, eventually, node, pod, scheduling

COLORS = ("red", "blue")


def profile(name, *colors):
    """A profile for nodes of these colours."""
    expression = {"key": "color", "operator": "In", "values": list(colors or (name,))}
    required = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    added = {"addedAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    return {"schedulerName": name, "pluginConfig": [{"name": "NodeAffinity", "args": added}]}


def read(profiles, shards):
    """What a scheduler starts with that is given these profiles and shards, each with its profiles."""
    listed = [{"name": name, "profiles": names} for name, names in shards]
    document = {"apiVersion": "berth.dev/v1alpha1", "kind": "ShardList", "shards": listed}
    text = f"{file({'profiles': profiles})}---\n{yaml.safe_dump(document)}"
    return read_settings(parse_flags(["--config=f"]), lambda _: text.encode())


@pytest.mark.parametrize(
    ("profiles", "shards", "error"),
    [
        pytest.param(
            [profile("red"), profile("blue")],
            [("one", ["red", "blue"]), ("two", ["red"])],
            'shards[1].profiles: profile "red" is in shard one already; keep one',
            id="a profile in two shards",
        ),
        pytest.param(
            [profile("red"), profile("blue", "red")],
            [("one", ["red"]), ("two", ["blue"])],
            'profiles "red" (shard one) and "blue" (shard two) may share nodes: put them into one shard, or',
            id="a pool of nodes in two shards",
        ),
        pytest.param(
            [profile("red"), profile("blue", "blue", "red")],
            [("one", ["red"]), ("two", ["blue"])],
            'profiles "red" (shard one) and "blue" (shard two) may share nodes: put them into one shard, or',
            id="a pool within another",
        ),
        pytest.param(
            [profile("red")],
            [("one", ["red", "green"])],
            'shards[0].profiles: there is no profile "green"; these are: red',
            id="an unknown profile",
        ),
        pytest.param(
            [profile("red"), profile("blue")],
            [("one", ["red"]), ("one", ["blue"])],
            'shards[1].name: "one" is listed already; names must differ',
            id="two shards of one lease",
        ),
    ],
)
def test_a_division_that_would_race_is_refused(profiles, shards, error):
    with pytest.raises(ShardListError) as raised:
        read(profiles, shards)

    (message,) = raised.value.messages
    assert message.startswith(f"f: ShardList: {error}")


async def test_a_lease_that_another_program_holds_leaves_the_other_shards_alone(tmp_path):
    """Pods of its shard wait, as on a standby; those of the others are bound."""
    taken = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "kube-scheduler-red", "namespace": "kube-system"},
        "spec": {"holderIdentity": "another program", "leaseDurationSeconds": 2**31 - 1},
    }
    nodes = [node(color) for color in COLORS]
    pods = [pod(color) for color in COLORS]
    for one in (*nodes, *pods):
        one["metadata"]["labels"] = {"color": one["metadata"]["name"]}
    for one in pods:
        one["spec"]["schedulerName"] = one["metadata"]["name"]
    profiles = yaml.safe_dump({"profiles": [profile(color) for color in COLORS]})
    shards = tuple(Shard(color, (color,)) for color in COLORS)
    objects = (taken, *nodes, *pods)
    async with scheduling(tmp_path, *objects, elect=True, profiles=profiles, shards=shards) as cluster:
        await eventually(lambda: cluster.bound() == {"blue": "blue"} and cluster.settled())

        assert (1, 0, 0, 0) == cluster.core.queue.sizes()
        assert "another program" == cluster.objects(LEASES)["kube-scheduler-red"]["spec"]["holderIdentity"]
        assert not cluster.process.done()
