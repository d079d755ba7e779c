"""Answers of metrics-server and Prometheus are read as load-aware reads them: by one table of answers."""

import json
from datetime import datetime
from pathlib import Path

import pytest

from berth.descheduling.load.readings import ReadingError, node_readings, pod_readings, samples_of

TABLE = json.loads((Path(__file__).parents[3] / "load" / "readings.json").read_text(encoding="utf-8"))
AT = "2026-01-01T00:00:00Z"


def by_claim(rows):
    return [pytest.param(row, id=row["claim"]) for row in rows]


@pytest.mark.parametrize("row", by_claim(row for row in TABLE["vectors"] if "expected" in row))
def test_a_vector(row):
    """Numbers by node, with the time of each."""
    found = samples_of(json.dumps(row["answer"]).encode(), "instance")

    assert row["expected"] == {
        name: {"at": int(sample.at.timestamp()), "value": sample.value} for name, sample in found.items()
    }


@pytest.mark.parametrize("row", by_claim(row for row in TABLE["vectors"] if "refused" in row))
def test_no_vector(row):
    """What is none is refused, and the text says what it is."""
    with pytest.raises(ReadingError) as refused:
        samples_of(json.dumps(row["answer"]).encode(), "instance")

    assert str(refused.value).startswith(row["refused"])


@pytest.mark.parametrize("row", by_claim(TABLE["nodeMetrics"]))
def test_node_metrics(row):
    """Amounts by node in the scheduler's units."""
    found = node_readings([json.dumps(item).encode() for item in row["items"]])

    assert row["expected"] == {
        name: {"at": int(reading.at.timestamp()), **reading.amounts} for name, reading in found.items()
    }


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b"[]", b'"\xff"', b"[" * 100_000, b'{"data":{"result":' + b"[" * 100_000]
)
def test_answers_of_another_server(body):
    """No JSON, or JSON of something else, is refused."""
    with pytest.raises(ReadingError):
        samples_of(body, "instance")


def test_pod_metrics():
    """A pod uses what its containers use together; what one of them lacks is not known of the pod."""
    containers = [
        {"name": "a", "usage": {"cpu": "1", "memory": "1Ki"}},
        {"name": "b", "usage": {"cpu": "500m"}},
    ]
    item = {"metadata": {"name": "p", "namespace": "ns"}, "timestamp": AT, "containers": containers}

    found = pod_readings([json.dumps(each).encode() for each in (item, {}, None)])

    assert {"ns/p": {"cpu": 1500}} == {key: dict(reading.amounts) for key, reading in found.items()}
    assert datetime.fromisoformat(AT) == found["ns/p"].at
