"""What holds for every search: it finds devices exactly where there are some, and asks each node alike."""

from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.suite import examples
from tests.unit.plugins.dynamic_resources.kit import (
    Cluster,
    allocated,
    claiming,
    device,
    make_claim,
    make_slice,
    request,
)

law = settings(max_examples=examples(60), deadline=None)

kinds = st.lists(st.sampled_from("xyz"), max_size=5)
wants = st.lists(st.tuples(st.integers(1, 3), st.sampled_from(["", "x", "y"])), min_size=1, max_size=3)


def part(name, found, node):
    devices = [device(f"d{i}", attributes={"kind": {"string": k}}) for i, k in enumerate(found)]
    return make_slice(name, devices, node=node)


def asked(wanted):
    return [
        request(
            f"r{i}",
            count=count,
            selectors=[{"cel": {"expression": f'device.attributes["gpu.example"].kind == "{kind}"'}}]
            if kind
            else [],
        )
        for i, (count, kind) in enumerate(wanted)
    ]


def possible(found, used, wanted, *, alike):
    """Whether the wants can be met, by trying everything."""
    if not wanted:
        return True
    count, kind = wanted[0]
    free = [i for i, k in enumerate(found) if i not in used and kind in ("", k)]
    return any(
        possible(found, used | set(chosen), wanted[1:], alike=alike)
        for chosen in combinations(free, count)
        if not alike or len({found[i] for i in chosen} | {found[i] for i in used if i >= 0}) == 1
    )


@law
@given(found=kinds, wanted=wants, alike=st.booleans())
def test_the_search_is_complete(found, wanted, alike):
    """A node fits exactly where some choice of its devices meets every request and constraint."""
    constraints = [{"matchAttribute": "gpu.example/kind"}] if alike else []
    claim = make_claim(requests=asked(wanted), constraints=constraints)
    cluster = Cluster(nodes=["n0"], slices=[part("s0", found, "n0")], claims=[claim])

    assert possible(found, set(), wanted, alike=alike) == bool(cluster.fits(claiming("c0")))


@law
@given(found=st.lists(kinds, min_size=3, max_size=3), shared=kinds, wanted=wants, taken=st.booleans())
def test_nodes_together_and_alone(found, shared, wanted, taken):
    """The reasons of all nodes together are the reasons of each node alone."""
    names = [f"n{i}" for i in range(3)]
    slices = [part(f"s{i}", f, names[i]) for i, f in enumerate(found)] + [part("all", shared, None)]
    claims = [make_claim(requests=asked(wanted))] + ([allocated("o", ("s0", "d0"))] if taken else [])
    alone = {}
    for name in names:
        alone |= Cluster(nodes=[name], slices=slices, claims=claims).reasons(claiming("c0"))

    assert alone == Cluster(nodes=names, slices=slices, claims=claims).reasons(claiming("c0"))
