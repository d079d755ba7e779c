"""The manifests of docs/coming-from.md are one tree: each of the others' comes to the Queues beside it."""

import re

import msgspec
import pytest
import yaml

from berth_queues import Queues
from berth_queues.importing import main
from berth_queues.queue_objects import QUEUES, queue_name, read
from berth_queues.tree import Tree
from berth_sdk import ObjectKey
from berth_sdk.quantity import units
from berth_sdk.testing import make_node, running
from tests.go_toolchain import ROOT
from tests.unit.queues.builders import pod, refusal

PAGE = (ROOT / "docs/coming-from.md").read_text(encoding="utf-8")
BLOCKS = dict(re.findall(r"^```yaml\n# ([^\n]+)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE))
GPU = "nvidia.com/gpu"
NO_LIMIT = -1


def ours(text):
    """The tree of Queue documents."""
    documents = list(yaml.safe_load_all(text))
    read_all = [read(each["metadata"]["name"], msgspec.json.encode(each)) for each in documents]
    return Tree({each.spec.name: each.spec for each in read_all})


def research(tree):
    return tree.queues[queue_name("research")]


def amounts(quantities):
    """Quantities as the plugin counts them; YuniKorn's word for CPU is another."""
    named = {{"vcore": "cpu"}.get(name, name): quantity for name, quantity in quantities.items()}
    return {name: units(name, quantity) for name, quantity in named.items()}


def of_kai(document):
    """CPU in thousandths, GPUs in units; 0 guarantees nothing, and -1 is no limit."""
    found = {"quota": {}, "limit": {}}
    for kind, each in document["spec"]["resources"].items():
        for field, amount in each.items():
            if amount not in {0, NO_LIMIT}:
                found[field][GPU if kind == "gpu" else kind] = amount
    return document["spec"]["parentQueue"], found["quota"], found["limit"]


def of_volcano(document):
    spec = document["spec"]
    return spec["parent"], amounts(spec["deserved"]), amounts(spec["capability"])


def of_yunikorn(document):
    (company,) = document["partitions"][0]["queues"]
    resources = company["queues"][0]["resources"]
    return company["name"], amounts(resources["guaranteed"]), amounts(resources["max"])


@pytest.mark.parametrize(
    ("theirs", "reader"),
    [("KAI Scheduler", of_kai), ("Volcano", of_volcano), ("YuniKorn", of_yunikorn)],
    ids=["KAI", "Volcano", "YuniKorn"],
)
def test_by_hand(theirs, reader):
    """By the rows of the page the fields are those of the Queue."""
    spec = research(ours(BLOCKS["Berth"])).spec

    found = reader(yaml.safe_load(BLOCKS[theirs]))

    assert (spec.parent, spec.quota, spec.limit) == (queue_name(found[0]), *found[1:])


def test_by_the_importer(tmp_path, capsys):
    """Kueue's objects come to the same quota, the same bound and the same namespace."""
    (tmp_path / "kueue.yaml").write_text(BLOCKS["Kueue"], encoding="utf-8")

    assert 0 == main([str(tmp_path / "kueue.yaml")])

    printed = capsys.readouterr().out
    mine, imported = research(ours(BLOCKS["Berth"])), research(ours(printed))
    assert (mine.spec.parent, mine.spec.quota) == (imported.spec.parent, imported.spec.quota)
    assert [mine.most(name) for name in ("cpu", GPU)] == [imported.most(name) for name in ("cpu", GPU)]
    assert "vision" in printed


async def test_a_queue_is_closed_by_its_limit():
    """`limit: {pods: "0"}` lets no new pod in."""
    async with running(Queues(("Queue",)), make_node("n0")) as host:
        key = ObjectKey(QUEUES.group, QUEUES.version, QUEUES.resource, "", "closed")
        host.cluster.put_object(key, {"spec": {"limit": {"pods": "0"}, "namespaces": ["a"]}})
        await host.update()

        assert "Queue closed would be over its limit of pods" in await refusal(host, pod("a", "p"))
