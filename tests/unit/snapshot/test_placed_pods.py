"""Counts of placed pods by question and by the terms they hold."""

from datetime import UTC, datetime

import msgspec
import numpy as np
import pytest

from berth.objects.label_selector import EVERYTHING, LabelSelector, Requirement, Selector, from_labels
from berth.objects.pods.pod_spec import Affinity, PodAffinity, PodAffinityTerm, WeightedPodAffinityTerm
from berth.snapshot.affinity_terms import TermKind, affinity_term, placed_terms
from berth.snapshot.placed import pod_counts
from berth.snapshot.placed.placed_pods import PlacedPods, PodQuery, PodsLike
from berth.snapshot.pod_info import PodInfo, claim_keys
from berth.testing.builders import make_pod

WEB = PodsLike(frozenset({"default"}), from_labels({"app": "web"}))
ANYWHERE = PodsLike(None, EVERYTHING)


def pod(name, *, ended=False, **fields):
    made = make_pod(name, **fields)
    if not ended:
        return made
    when = datetime(2026, 1, 1, tzinfo=UTC)
    return msgspec.structs.replace(
        made, metadata=msgspec.structs.replace(made.metadata, deletion_timestamp=when)
    )


PODS = [
    (0, pod("a", labels={"app": "web"})),
    (0, pod("b", labels={"app": "db"})),
    (1, pod("c", labels={"app": "web"}, ended=True)),
    (2, pod("d", labels={"app": "web"}, namespace="other")),
]


def counted(pods=PODS):
    counts = PlacedPods(4)
    for row, placed in pods:
        counts.add(row, PodInfo(placed))
    return counts


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        (PodQuery((ANYWHERE,)), [2, 1, 1]),
        (PodQuery((WEB,)), [1, 1, 0]),
        (PodQuery((WEB,), terminating=False), [1, 0, 0]),
        (PodQuery((PodsLike(None, from_labels({"app": "web"})),)), [1, 1, 1]),
        (PodQuery((WEB, PodsLike(None, Selector((Requirement("app", "NotIn", ("web",)),))))), [0, 0, 0]),
        (PodQuery((PodsLike(frozenset({"other"}), EVERYTHING),)), [0, 0, 1]),
        (PodQuery((PodsLike(frozenset(), EVERYTHING),)), [0, 0, 0]),
    ],
)
def test_a_question_asked_before_or_after_the_pods_came(question, expected):
    before = PlacedPods(4)
    before.count(question, 3)
    for row, placed in PODS:
        before.add(row, PodInfo(placed))

    assert expected == before.count(question, 3).tolist()
    assert expected == counted().count(question, 3).tolist()


def test_what_came_and_went_leaves_nothing():
    counts = counted()
    counts.count(PodQuery((ANYWHERE,)), 3)
    for row, placed in PODS:
        counts.add(row, PodInfo(placed), -1)

    assert [0, 0, 0] == counts.count(PodQuery((ANYWHERE,)), 3).tolist()
    assert [0, 0, 0] == counts.count(PodQuery((WEB,)), 3).tolist()
    assert [] == list(counts.terms.held())


def test_forgotten_questions_are_answered_anew(monkeypatch):
    """Only so many columns are kept; one that was dropped is filled again."""
    monkeypatch.setattr(pod_counts, "MAX_BYTES", 3000)
    counts = counted()
    questions = [PodQuery((ANYWHERE,)), PodQuery((WEB,)), PodQuery((WEB,), terminating=False)]
    for question in questions:
        counts.count(question, 3)
    counts.add(0, PodInfo(pod("e", labels={"app": "web"})))

    assert [[3, 1, 1], [2, 1, 0], [2, 0, 0]] == [counts.count(q, 3).tolist() for q in questions]


def test_growing_keeps_counting():
    counts = counted()
    question = PodQuery((ANYWHERE,))
    counts.count(question, 3)
    counts.grow(8)
    counts.add(7, PodInfo(pod("e")))

    assert [2, 1, 1, 0, 0, 0, 0, 1] == counts.count(question, 8).tolist()


def test_holders_of_a_term():
    zone = PodAffinityTerm(LabelSelector({"app": "web"}), topology_key="zone")
    away = Affinity(pod_anti_affinity=PodAffinity((zone,), (WeightedPodAffinityTerm(5, zone),)))
    counts = PlacedPods(3)
    counts.terms.follow_label_keys({"zone"}, 1)
    counts.add(1, PodInfo(pod("a", affinity=away)))
    required, preferred = sorted(
        counts.terms.held(), key=lambda held: held.kind is TermKind.PREFERRED_ANTI_AFFINITY
    )
    counts.terms.on_rows(required, 3)
    counts.add(2, PodInfo(pod("b", affinity=away)))

    assert (TermKind.REQUIRED_ANTI_AFFINITY, TermKind.PREFERRED_ANTI_AFFINITY) == (
        required.kind,
        preferred.kind,
    )
    assert (1, 5) == (required.weight(required.times), preferred.weight(preferred.times))
    assert [0, 1, 1] == counts.terms.on_rows(required, 3).tolist()
    assert [0, 1, 1] == counts.terms.on_rows(preferred, 3).tolist()


IN_PROD = LabelSelector({"env": "prod"})


@pytest.mark.parametrize(
    ("term", "namespace", "labels", "matches"),
    [
        (PodAffinityTerm(LabelSelector()), "default", {}, True),
        (PodAffinityTerm(LabelSelector()), "other", {}, False),
        (PodAffinityTerm(LabelSelector(), ("other",)), "other", {}, True),
        (PodAffinityTerm(LabelSelector(), ("other",)), "default", {}, False),
        (PodAffinityTerm(LabelSelector(), (), LabelSelector()), "anything", {}, True),
        (PodAffinityTerm(LabelSelector(), (), IN_PROD), "x", {"env": "prod"}, True),
        (PodAffinityTerm(LabelSelector(), (), IN_PROD), "default", {}, False),
        (PodAffinityTerm(LabelSelector(), ("y",), IN_PROD), "y", {}, True),
        (PodAffinityTerm(None), "default", {}, False),
        (PodAffinityTerm(IN_PROD), "default", {}, False),
    ],
)
def test_whom_a_term_means(term, namespace, labels, matches):
    """Namespaces listed, or selected, or the owner's own where neither is said."""
    ready = affinity_term(term, "default")

    assert matches is ready.matches(make_pod("other", namespace=namespace), labels)


def test_terms_that_do_not_parse_count_as_none():
    bad = PodAffinityTerm(LabelSelector(match_expressions=(Requirement("a", "Like"),)), topology_key="zone")
    good = PodAffinityTerm(LabelSelector(), topology_key="zone")
    affinity = Affinity(pod_affinity=PodAffinity((good,)), pod_anti_affinity=PodAffinity((bad,)))

    assert () == placed_terms(make_pod(affinity=affinity))
    assert 1 == len(placed_terms(make_pod(affinity=Affinity(pod_affinity=PodAffinity((good,))))))


def test_claims_are_those_of_volumes_that_name_one():
    volumes = ({"persistentVolumeClaim": {"claimName": "data"}}, {"emptyDir": {}}, {"ephemeral": {}})

    assert ("default/data",) == claim_keys(make_pod(volumes=volumes))


def test_columns_are_whole_numbers():
    assert np.int64 == counted().count(PodQuery((ANYWHERE,)), 3).dtype
