"""Amounts made to keep a scheduler busy, to overflow its columns, or to end it."""

import json
from fractions import Fraction
from math import ceil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.cache.cache import Cache
from berth.framework.interface import MAX_NODE_SCORE
from berth.objects import quantity
from berth.objects.decode import UndecodableObjectError, decoder
from berth.objects.node import Node
from berth.objects.pods.pod_decoding import decode_pod
from berth.objects.pods.pod_requests import fit_requests, pod_limits, pod_requests
from berth.objects.quantity import (
    MAX_INT64,
    MAX_NANOS,
    MIN_INT64,
    InvalidQuantityError,
    milli,
    nanos,
    saturated,
    whole,
)
from berth.plugins.image_locality import locality
from berth.plugins.resource_shares import Offer, percents, with_pod
from berth.snapshot.snapshot import Snapshot
from berth.telemetry.metrics.pod_resources import pod_resource_text
from berth.testing.builders import make_node, make_pod
from tests.hostile.work import calls, kept_bytes

MILLION = 1_000_000


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("9" * 5_000, MAX_NANOS),
        ("NINES", MAX_NANOS),
        ("NINESEi", MAX_NANOS),
        ("-NINES", -MAX_NANOS),
        ("ZEROS", 0),
        ("ZEROS1", 10**9),
        ("ZEROS1.ZEROS", 10**9),
        ("ZEROS1.ZEROS1", 10**9 + 1),
        ("-1.ZEROS1", -(10**9)),
        ("0.NINES", 10**9),
        ("0.NINESKi", 1024 * 10**9),
        ("0.ZEROS1", 1),
        ("0.ZEROS1e1000001", 10**9),
        ("1ZEROSe-1000000", 10**9),
        ("1e99999999999", MAX_NANOS),
        ("1E+99999999999", MAX_NANOS),
        ("1eNINES", MAX_NANOS),
        ("1e-NINES", 1),
        ("-1e-NINES", 0),
        ("1e-ZEROS3", 10**6),
        ("0eNINES", 0),
        (10**5_000, MAX_NANOS),
        (-(10**5_000), -MAX_NANOS),
    ],
    ids=lambda value: value[:12] if isinstance(value, str) else "number",
)
def test_an_amount_ends_at_64_bits(text, amount):
    """ZEROS and NINES stand for a million of them, which no process keeps from its start on."""
    if isinstance(text, str):
        text = text.replace("ZEROS", "0" * MILLION).replace("NINES", "9" * MILLION)

    assert amount == nanos(text)


@pytest.mark.parametrize(
    "text",
    [
        "9" * MILLION + "x",
        "9" * MILLION + "." + "9" * MILLION + "x",
        "." * MILLION,
        "e" * MILLION,
        "1e" * MILLION,
        "+" * MILLION,
        "Ki" * MILLION,
        "\u0661",
        "1_0",
        "0x1",
        "nan",
        "inf",
        "1e+",
        "1e1Ki",
    ],
    ids=lambda text: text[:8],
)
def test_what_is_no_amount_is_refused_in_few_words(text):
    with pytest.raises(InvalidQuantityError) as raised:
        nanos(text)

    assert len(str(raised.value)) < 300


@pytest.mark.parametrize("text", ["9" * MILLION, "0." + "9" * MILLION + "Ei", "9" * MILLION + "x"])
def test_reading_takes_no_step_for_each_digit(text):
    def read():
        try:
            nanos(text)
        except InvalidQuantityError:
            return

    assert calls(read) < 60


@given(
    sign=st.sampled_from(["", "-", "+"]),
    before=st.text("0123456789", max_size=45),
    behind=st.text("0123456789", min_size=1, max_size=120),
    suffix=st.sampled_from(["", "n", "m", "k", "E", "Ki", "Ei"]) | st.integers(-130, 60).map("e{}".format),
)
def test_long_amounts_are_exact_and_round_up_once(sign, before, behind, suffix):
    units = {"": 1, "n": Fraction(1, 10**9), "m": Fraction(1, 1000), "k": 1000, "E": 10**18}
    units |= {"Ki": 2**10, "Ei": 2**60}
    scale = Fraction(10) ** int(suffix[1:]) if suffix[:1] == "e" else units[suffix]
    exact = Fraction(f"{sign}{before or '0'}.{behind}") * scale * 10**9

    assert max(-MAX_NANOS, min(MAX_NANOS, ceil(exact))) == nanos(f"{sign}{before}.{behind}{suffix}")


def test_the_cache_of_amounts_keeps_no_long_texts():
    nanos("1")
    texts = [f"{number}.{'1' * 10_000}" for number in range(100)]

    assert kept_bytes(lambda: [nanos(text) for text in texts]) < 20_000
    assert quantity._LONGEST_KEPT * quantity._KEPT < MILLION


@pytest.mark.parametrize("amount", [MAX_NANOS * 10**6, -MAX_NANOS * 10**6, MAX_NANOS, 0, 1])
def test_units_fit_64_bits_either_way(amount):
    for units in (whole(amount), milli(amount), saturated(amount)):
        assert MIN_INT64 <= units <= MAX_INT64


HUGE = "9" * 5_000


def huge_pod(name, node="", amount=HUGE):
    amounts = {"cpu": amount, "memory": amount, "example.com/gpu": amount}
    return make_pod(name, requests=amounts, node_name=node)


def test_sums_of_requests_end_at_64_bits():
    pod = huge_pod("p")
    document = {"requests": {"cpu": HUGE}, "limits": {"cpu": HUGE}}
    many = decode_pod(
        _json({"spec": {"containers": [{"name": str(n), "resources": document} for n in range(9)]}})
    )

    assert {"cpu": MAX_INT64, "memory": MAX_INT64, "example.com/gpu": MAX_INT64} == fit_requests(pod)
    assert {"cpu": MAX_INT64} == fit_requests(many)
    assert pod_requests(many) == pod_limits(many) == {"cpu": 9 * MAX_NANOS}
    assert b"kube_pod_resource_request" in pod_resource_text([pod, many])


def test_a_column_of_saturated_pods_is_right_again_once_they_are_gone():
    cache, snapshot = Cache(), Snapshot()
    cache.add_node(make_node("n", allocatable={"cpu": HUGE, "memory": HUGE, "pods": HUGE}))
    small = make_pod("small", requests={"cpu": "1"}, node_name="n")
    pods = [huge_pod(f"p{number}", "n") for number in range(5)]
    for pod in (small, *pods):
        cache.add_pod(pod)
    cache.update_snapshot(snapshot)

    assert snapshot.requested[snapshot.resource_index("cpu")].tolist() == [MAX_INT64]
    for pod in pods:
        cache.remove_pod(pod)
    cache.update_snapshot(snapshot)
    assert snapshot.requested[snapshot.resource_index("cpu")].tolist() == [1000]


@given(
    held=st.integers(0, MAX_INT64), request=st.integers(0, MAX_INT64), offered=st.integers(2**46, MAX_INT64)
)
def test_percents_of_amounts_near_the_end_stay_percents(held, request, offered):
    """As integers without an end would have them, but for the last bits of what is beyond 2**56."""
    offer = Offer(np.array([offered]), np.array([offered]))
    used = with_pod(np.array([held]), request, offer, np.empty(1))

    exact = 100 * min(used[0].item(), offered) // offered
    assert min(held + request, MAX_INT64) == used[0]
    assert abs(percents(np.minimum(used, offer.amount), offer)[0] - exact) <= (offered > MAX_INT64 // 100)


def test_images_of_any_size_score_within_bounds():
    image = {"names": ["app:1"], "sizeBytes": MAX_INT64}
    node = decoder(Node)(_json({"metadata": {"name": "n"}, "status": {"images": [image]}}))
    cache, snapshot = Cache(), Snapshot()
    cache.add_node(node)
    cache.update_snapshot(snapshot)

    assert locality(("docker.io/library/app:1", "app:1") * 9, 1, snapshot).max() <= MAX_NODE_SCORE


@pytest.mark.parametrize(
    ("decode", "document"),
    [
        (decode_pod, {"spec": {"priority": 2**31}}),
        (decode_pod, {"spec": {"containers": [{"ports": [{"hostPort": 10**30}]}]}}),
        (decode_pod, {"spec": {"topologySpreadConstraints": [{"maxSkew": -(10**30)}]}}),
        (decode_pod, {"spec": {"terminationGracePeriodSeconds": 2**63}}),
        (decode_pod, {"status": {"startTime": "10000-01-01T00:00:00Z"}}),
        (decode_pod, {"status": {"startTime": "0000-01-01T00:00:00Z"}}),
        (decode_pod, {"metadata": {"generation": 10**400}}),
        (decoder(Node), {"status": {"images": [{"sizeBytes": 2**63}]}}),
        (decoder(Node), {"status": {"images": [{"sizeBytes": 1.5}]}}),
    ],
)
def test_a_number_beyond_its_type_does_not_decode(decode, document):
    with pytest.raises(UndecodableObjectError):
        decode(_json(document))


def _json(document):
    return json.dumps(document).encode()
