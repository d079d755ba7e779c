"""The soak distinguishes what grows from what only moves."""

import pytest

from tests.benchmarks.soak import KINDS, MEBIBYTES, Samples, what_grew
from tests.benchmarks.soak_plot import plot
from tests.hostile.arena import API_VERSIONS
from tests.unit.scheduler_at_work import eventually, node, scheduling

GROWING = [100 + 10 * i for i in range(40)]


def grew(series, name="core.columns"):
    """What is found in samples of that series alone."""
    samples = Samples()
    for number, size in enumerate(series):
        samples.add(float(number), {name: size, MEBIBYTES: 100})
    return what_grew(samples)


@pytest.mark.parametrize(
    "series",
    [
        [1_000] * 40,
        [1_000 + 200 * (i % 2) for i in range(40)],
        [100 * i for i in range(10)] + [1_000] * 30,
        [1_000 - i for i in range(40)],
        [10 + i for i in range(40)],
    ],
)
def test_what_moves_or_fills_at_first_did_not_grow(series):
    assert grew(series) == []


def test_what_grows_all_the_time_is_found():
    assert grew(GROWING) == ["core.columns"]


def test_a_memory_of_bounded_size_may_fill():
    assert grew(GROWING, "core.journal._kept") == []
    assert grew([size * 1_000 for size in GROWING], "core.journal._kept") == ["core.journal._kept"]


def test_a_size_that_appears_later_was_nought_before():
    samples = Samples()
    samples.add(0.0, {"a": 1})
    samples.add(1.0, {"a": 1, "b": 2})

    assert samples.sizes == {"a": [1.0, 1.0], "b": [0.0, 2.0]}


def test_the_plot_has_a_line_for_each_size():
    drawn = plot([0.0, 60.0], {"a<b": [1.0, 2.0], "c": [0.0, 0.0]}, ["a<b", "c"])

    assert drawn.count("<polyline") == 2
    assert "a&lt;b: 2 after 1 min" in drawn


@pytest.mark.parametrize("kind", KINDS)
async def test_every_kind_of_churn_is_taken(tmp_path, kind):
    async with scheduling(tmp_path / "kubeconfig", node("n")) as (sandbox, core):
        documents = list(kind(7))
        for document in documents:
            document["metadata"].setdefault("namespace", "default")
            if document["kind"] == "Pod":
                document["spec"]["schedulerName"] = "default-scheduler"
        sandbox.load({"apiVersion": version(document), **document} for document in documents)
        queue, cache = core.queue, core.cache
        await eventually(lambda: cache.pod_count() or queue.record("default", "pod-7") is not None)

        assert core.pod_handler.synced


def version(document):
    """The version of a kind that is written without one."""
    return API_VERSIONS[document["kind"]]
