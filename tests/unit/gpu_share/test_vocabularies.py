"""GPU shares in HAMi's and KAI's words: read as those read them, or refused by pod, field and remedy."""

import itertools

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth_gpu_share import GpuShare
from berth_gpu_share.contract import WHOLE, Demand, DemandError
from berth_gpu_share.vocabularies import PRESETS, vocabulary
from berth_sdk import Action, ArgumentError, ClusterEvent, Code
from berth_sdk.objects import decode_pod
from berth_sdk.testing import make_node, make_pod, running

GPU = "nvidia.com/gpu"
A100, T4 = 81_920, 16_384


def read(names, document):
    return PRESETS[names](decode_pod(msgspec.json.encode(document)))


def hami(**asked):
    """A pod that asks in HAMi's names, each without its beginning; `n` is the number of GPUs."""
    requests = {
        f"{GPU}{name.replace('_', '-')}": str(amount) for name, amount in asked.items() if name != "n"
    }
    return make_pod("p", requests={"cpu": "1", GPU: str(asked.get("n", 1)), **requests})


def kai(**notes):
    return make_pod("p", annotations={name.replace("_", "-"): text for name, text in notes.items()})


def nvidia_node(name, count, memory, *, shown=1):
    labels = {f"{GPU}.count": str(count), f"{GPU}.memory": str(memory), f"{GPU}.product": name}
    return make_node(name, allocatable={"cpu": "64", "pods": "110", GPU: str(shown * count)}, labels=labels)


@pytest.mark.parametrize(
    ("names", "document", "demand"),
    [
        pytest.param("hami", hami(), Demand(1, 1000, cpu=1000), id="HAMi: a whole GPU"),
        pytest.param("hami", hami(mem=3000), Demand(1, 0, cpu=1000, memory=3000), id="HAMi: memory"),
        pytest.param("hami", hami(mem_percentage=50), Demand(1, 500, cpu=1000), id="HAMi: a part of memory"),
        pytest.param("hami", hami(cores=30), Demand(1, 1000, cpu=1000), id="HAMi: cores, and all memory"),
        pytest.param(
            "hami",
            hami(mem=3000, cores=30),
            Demand(1, 300, cpu=1000, memory=3000),
            id="HAMi: memory and cores",
        ),
        pytest.param(
            "hami",
            hami(n=2, mem_percentage=10, cores=30),
            Demand(2, 300, cpu=1000),
            id="HAMi: the larger part",
        ),
        pytest.param("hami", make_pod("p", requests={"cpu": "1"}), None, id="HAMi: no GPU"),
        pytest.param("kai", kai(gpu_fraction="0.5"), Demand(1, 500), id="KAI: a fraction"),
        pytest.param("kai", kai(gpu_fraction="0.0001"), Demand(1, 1), id="KAI: a small fraction rounds up"),
        pytest.param("kai", kai(gpu_memory="2000"), Demand(1, 0, memory=2000), id="KAI: memory"),
        pytest.param(
            "kai",
            kai(gpu_fraction=".25", gpu_fraction_num_devices="2"),
            Demand(2, 250),
            id="KAI: of two GPUs",
        ),
        pytest.param("kai", make_pod("p", requests={GPU: "2"}), Demand(2, 1000), id="KAI: whole GPUs"),
        pytest.param("kai", make_pod("p"), None, id="KAI: no GPU"),
    ],
)
def test_what_is_asked_for(names, document, demand):
    """Each word counts as its own scheduler counts it."""
    assert demand == read(names, document)


@pytest.mark.parametrize(
    ("names", "document", "complaint"),
    [
        ("hami", hami(cores=150), r"requests\[nvidia.com/gpucores\]: found 150; write 1 to 100"),
        (
            "hami",
            hami(mem_percentage=101),
            r"requests\[nvidia.com/gpumem-percentage\]: found 101; write 1 to 100",
        ),
        ("hami", hami(mem=1, mem_percentage=1), "found beside nvidia.com/gpumem; write one of them"),
        ("hami", hami(n=65), r"requests\[nvidia.com/gpu\]: found 65; write 1 to 64"),
        (
            "kai",
            kai(gpu_fraction="1.0"),
            r"annotations\[gpu-fraction\]: found '1.0'; write more than 0 and less",
        ),
        ("kai", kai(gpu_fraction="0"), "found '0'; write more than 0"),
        ("kai", kai(gpu_fraction="0.0"), "found '0.0'; write more than 0"),
        ("kai", kai(gpu_fraction="1e-3"), "found '1e-3'; write more than 0"),
        ("kai", kai(gpu_fraction="0." + "1" * 99), "found '0.11"),
        ("kai", kai(gpu_memory="2Gi"), r"annotations\[gpu-memory\]: found '2Gi'; write a number from 1"),
        ("kai", kai(gpu_memory="0"), "found '0'; write a number from 1"),
        ("kai", kai(gpu_memory="٣"), "found '٣'; write a number from 1"),
        ("kai", kai(gpu_fraction="0.5", gpu_memory="1"), "found beside gpu-fraction; write one of them"),
        ("kai", kai(gpu_fraction="0.5", gpu_fraction_num_devices="0"), r"num-devices\]: found '0'; write"),
    ],
)
def test_nonsense_is_named(names, document, complaint):
    """The field, what was found, and what to write."""
    with pytest.raises(DemandError, match=complaint):
        read(names, document)


def test_a_share_and_whole_gpus():
    """KAI refuses both in one pod, and so do we."""
    document = make_pod("p", requests={GPU: "1"}, annotations={"gpu-fraction": "0.5"})

    with pytest.raises(DemandError, match="found beside a share by annotation; write one of them"):
        read("kai", document)


def test_two_containers_with_shares():
    """Their sum would be a share that neither asked for."""
    document = hami(mem=3000)
    document["spec"]["containers"].append({**document["spec"]["containers"][0], "name": "second"})

    with pytest.raises(DemandError, match=r"2 containers ask for nvidia.com/gpu; ask for it in one"):
        read("hami", document)


async def test_memory_counts_by_the_devices_of_each_node():
    """The same MiB are a larger part of a small GPU, and do not fit into one that is smaller still."""
    nodes = nvidia_node("a100", 1, A100, shown=10), nvidia_node("t4", 1, T4, shown=10), make_node("cpu")
    bare = make_node("bare", allocatable={"cpu": "64", "pods": "110", GPU: "1"})
    async with running(GpuShare(), *nodes, bare, arguments={"names": "hami"}) as host:
        first = (await host.filter(hami(mem=20_000))).nodes
        await host.place(another(hami(mem=12_000), "on-t4"), "t4")
        await host.place(another(hami(mem=12_000), "on-a100"), "a100")
        second = (await host.filter(hami(mem=12_000))).nodes

    too_small, full, none = GpuShare.reasons[5], GpuShare.reasons[3], GpuShare.reasons[0]
    assert {"t4": too_small, "bare": too_small, "cpu": none} == first
    assert {"t4": full, "bare": too_small, "cpu": none} == second


async def test_the_condition_of_the_pod():
    """It has the field, what was found, and what to write; equal pods share it, so it names none of them."""
    async with running(GpuShare(), nvidia_node("n", 1, T4), arguments={"names": "kai"}) as host:
        status = (await host.filter(kai(gpu_fraction="2"))).status

    assert Code.UNSCHEDULABLE_AND_UNRESOLVABLE == status.code
    assert status.reasons[0].startswith("annotations[gpu-fraction]: found '2'; write more than")


async def test_placed_pods_count_in_every_word():
    """What another profile, or another scheduler, placed on a GPU is taken from it."""
    async with running(GpuShare(), nvidia_node("n", 1, T4), arguments={"names": "kai"}) as host:
        host.cluster.put_pod(hami(mem=T4 // 2), "n")
        await host.update()

        assert {"n": GpuShare.reasons[3]} == (await host.filter(another(kai(gpu_fraction="0.6")))).nodes
        assert {} == (await host.filter(another(kai(gpu_fraction="0.5")))).nodes


@pytest.mark.parametrize(
    ("names", "complaint"),
    [
        ("volcano", "names: 'volcano' is none of berth, hami, kai, and no resources by count, memory"),
        ({}, "names: {} is none of berth, hami, kai"),
        ({"gpu": "a/b"}, "names: gpu: there are count, memory, memoryPercentage, cores"),
        ({"count": "gpu"}, "names: count: 'gpu' is no resource; write it as nvidia.com/gpu"),
        ({"count": 1}, "names: count: 1 is no resource"),
    ],
)
async def test_names_that_cannot_be(names, complaint):
    """Arguments are refused by field, with what to write."""
    with pytest.raises(ArgumentError) as refused:
        GpuShare().configure({"names": names}, "main")

    assert complaint in str(refused.value)


def test_names_of_ones_own():
    """HAMi's words may go by other resources, as in its chart."""
    reading = vocabulary({"count": "example.com/gpu", "memory": "example.com/mib"})
    document = make_pod("p", requests={"example.com/gpu": "1", "example.com/mib": "5"})

    assert Demand(1, 0, memory=5) == reading(decode_pod(msgspec.json.encode(document)))


@given(
    memory=st.integers(1, 1 << 24),
    device=st.integers(1, 1 << 24),
    milli=st.integers(0, WHOLE),
    count=st.integers(2, 9),
)
def test_memory_is_never_given_twice(memory, device, milli, count):
    """As many shares as fit into a device's thousandths fit into its memory."""
    there = Demand(1, milli, memory=memory).on(device)

    assert (there is None) == (memory > device)
    if there is not None and there.milli * count <= WHOLE:
        assert count * memory <= device
    assert there is None or there.milli >= milli


@pytest.mark.parametrize("policy", ["best-fit", "clustering", "dot-product", "fgd", "packing", "random"])
async def test_several_shares_go_to_several_devices(policy):
    """A share of each of two GPUs takes the fullest two with room, under every policy."""
    async with running(GpuShare(policy), nvidia_node("n", 3, T4), arguments={"names": "hami"}) as host:
        placed = [await host.place(another(hami(n=2, mem_percentage=40), f"p{i}"), "n") for i in range(2)]
        full = (await host.filter(hami(n=2, mem_percentage=40))).nodes

    devices = [each["metadata"]["annotations"]["gpu-share.berth.dev/devices"].split(",") for each in placed]
    taken = sorted(itertools.chain(*devices))
    assert [2, 2] == [len(set(each)) for each in devices]
    assert all(taken.count(device) <= 2 for device in taken)
    assert {"n": GpuShare.reasons[3]} == full


def another(document, name="another"):
    """The same pod under another name."""
    metadata = make_pod(name)["metadata"]
    return {**document, "metadata": {**document["metadata"], "name": name, "uid": metadata["uid"]}}


@pytest.mark.parametrize(
    ("gone", "queued"),
    [
        pytest.param(kai(gpu_fraction="0.5"), True, id="a share by annotation"),
        pytest.param(hami(mem=5), True, id="a share by request"),
        pytest.param(make_pod("p", requests={"cpu": "1"}), False, id="no GPU"),
        pytest.param(kai(gpu_fraction="7"), False, id="nonsense, which held nothing"),
    ],
)
def test_pods_that_held_a_share_wake_those_that_wait(gone, queued):
    """A pod that went without one makes no room."""
    event = ClusterEvent("Pod", Action.DELETE, old=msgspec.json.encode(gone))

    assert queued == GpuShare().queueing_hint(decode_pod(msgspec.json.encode(gone)), event)
