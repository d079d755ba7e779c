"""Domains of labels, and sums over them that follow pods."""

import random

import numpy as np
import pytest

from berth.cache.cache import Cache
from berth.objects.label_selector import EVERYTHING
from berth.objects.pods.pod_spec import Affinity, PodAffinity, PodAffinityTerm
from berth.plugins.topology import count_in, division, holders_in, no_domains, on_nodes, places, topology
from berth.snapshot.placed.placed_pods import PodQuery, PodsLike
from berth.snapshot.snapshot import Snapshot
from berth.testing.builders import make_node, make_pod
from berth.testing.clusters import table

ANY = PodQuery((PodsLike(None, EVERYTHING),))
KEYS = ("zone", "name", "missing")
APART = Affinity(None, None, PodAffinity((PodAffinityTerm(topology_key="zone"),)))


def zoned(*zones):
    return [
        make_node(f"n{i}", labels={"name": f"n{i}"} | ({} if zone is None else {"zone": zone}))
        for i, zone in enumerate(zones)
    ]


def test_nodes_that_are_domains_of_their_own():
    """Where no two nodes share a value, a node's place is that of its row."""
    nodes = table(zoned("a", "b", "a"))

    assert topology(nodes, "name").apart
    assert [1, 2, 3] == places(nodes, "name").tolist()
    assert [2, 3] == places(nodes.view(slice(1, 3)), "name").tolist()


def test_nodes_that_share_domains():
    """Nodes of one value have one place, and those without the label have place 0."""
    nodes = table(zoned("a", None, "a"))

    assert not topology(nodes, "zone").apart
    assert [1, 0, 1] == places(nodes, "zone").tolist()


@pytest.mark.parametrize("key", KEYS)
def test_what_domains_have_on_nodes(key):
    """A value of each domain is that of its nodes, in a part of the table too."""
    nodes = table(zoned("a", None, "b", "a"))
    values = np.arange(no_domains(nodes, key).size) * 10

    for rows in (nodes, nodes.view(slice(1, 3))):
        assert (places(rows, key) * 10).tolist() == on_nodes(rows, key, values).tolist()


def test_nodes_that_do_not_count():
    """A division leaves out nodes, and the domains that have no other."""
    nodes = table(zoned("a", "b", "a"), [make_pod(f"p{i}", node_name=f"n{i}") for i in range(3)])
    without_b = division(nodes, "zone", "n2 alone", lambda _: np.array([False, False, True]))

    assert [0, 1, 0] == count_in(nodes, "zone", ANY, without_b).tolist()
    assert [False, True, False] == without_b.known.tolist()


@pytest.mark.parametrize("seed", range(6))
def test_sums_follow(seed):
    """Sums over domains are those made anew, whatever comes, goes and is labelled otherwise."""
    cluster, nodes = ChangingCluster(seed), Snapshot()
    for step in range(120):
        cluster.change(f"{step}")
        cluster.cache.update_snapshot(nodes)
        for key in KEYS:
            assert anew(nodes, key, nodes.count(ANY)) == count_in(nodes, key, ANY).tolist()
            for held in nodes.placed.terms.held():
                on_nodes_ = nodes.placed.terms.on_rows(held, len(nodes))
                counts, sums = holders_in(nodes, key, {held: 3})
                assert anew(nodes, key, on_nodes_) == counts.tolist()
                assert (3 * counts).tolist() == sums.tolist()


class ChangingCluster:
    """A cluster in which things happen by chance."""

    def __init__(self, seed):
        self.cache = Cache()
        self.chance = random.Random(seed)
        self.nodes, self.pods = [], []

    def change(self, name):
        """One node or pod comes, goes or changes."""
        kinds = (self.node_comes, self.node_changes, self.node_goes, self.pod_goes, *[self.pod_comes] * 4)
        kind = self.chance.choice(kinds)
        if self.nodes or kind == self.node_comes:
            kind(name)

    def node_comes(self, name):
        self.nodes.append(self.node(name))
        self.cache.add_node(self.nodes[-1])

    def node_changes(self, _):
        old = self.taken_from(self.nodes)
        self.nodes.append(self.node(old.name))
        self.cache.update_node(old, self.nodes[-1])

    def node_goes(self, _):
        self.cache.remove_node(self.taken_from(self.nodes))

    def pod_comes(self, name):
        node = self.chance.choice(self.nodes).name
        self.pods.append(make_pod(name, node_name=node, affinity=self.chance.choice((None, APART))))
        self.cache.add_pod(self.pods[-1])

    def pod_goes(self, _):
        if self.pods:
            self.cache.remove_pod(self.taken_from(self.pods))

    def node(self, name):
        zone = self.chance.choice(({}, {"zone": "a"}, {"zone": "b"}, {"zone": "c"}))
        return make_node(name, labels={"name": name} | zone)

    def taken_from(self, things):
        return things.pop(self.chance.randrange(len(things)))


def anew(nodes, key, counts):
    sums = np.bincount(places(nodes, key), weights=counts, minlength=no_domains(nodes, key).size)
    return [0, *sums[1:].astype(np.int64).tolist()]
