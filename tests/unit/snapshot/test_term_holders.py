"""Which terms of placed pods mean a pod: kept up to date, it is what asking every term anew gives."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from berth.objects.label_selector import LabelSelector, Requirement
from berth.objects.pods.pod_spec import Affinity, PodAffinity, PodAffinityTerm, WeightedPodAffinityTerm
from berth.objects.steps import at_once
from berth.snapshot.affinity_terms import TermKind
from berth.snapshot.placed.term_holders import TermHolders
from berth.snapshot.pod_info import PodInfo
from berth.testing.builders import make_pod

KEYS, NAMESPACES = ("host", "zone", "rack"), ("default", "other")
SELECTORS = st.one_of(
    st.none(),
    st.builds(LabelSelector, st.dictionaries(st.sampled_from("ab"), st.sampled_from("xy"), max_size=1)),
    st.builds(
        lambda key, operator: LabelSelector(match_expressions=(Requirement(key, operator),)),
        st.sampled_from("ab"),
        st.sampled_from(("Exists", "DoesNotExist")),
    ),
)
TERMS = st.builds(
    lambda selector, key, everywhere: PodAffinityTerm(
        selector, topology_key=key, namespace_selector=LabelSelector() if everywhere else None
    ),
    SELECTORS,
    st.sampled_from(KEYS),
    st.booleans(),
)
SIDES = st.builds(
    lambda required, preferred: PodAffinity(
        tuple(required), tuple(WeightedPodAffinityTerm(3, term) for term in preferred)
    ),
    st.lists(TERMS, max_size=3),
    st.lists(TERMS, max_size=2),
)
PLACED = st.builds(
    lambda near, away, namespace: make_pod("p", namespace=namespace, affinity=Affinity(None, near, away)),
    SIDES,
    SIDES,
    st.sampled_from(NAMESPACES),
)
ASKED = st.builds(
    lambda labels, namespace: make_pod("asked", labels=labels, namespace=namespace),
    st.dictionaries(st.sampled_from("ab"), st.sampled_from("xy"), max_size=2),
    st.sampled_from(NAMESPACES),
)
STEPS = st.lists(st.tuples(st.booleans(), PLACED, st.sets(st.sampled_from(KEYS))), max_size=8)


def asked_anew(placed, pod, label_keys):
    """What each placed pod's terms come to for the pod, by topology key: weights by list of terms."""
    found = {}
    for held in {held for info in placed for held in info.held if held.topology_key in label_keys}:
        meaning = [term for term in held.times if term.term.matches(pod, {})]
        if meaning:
            once = held.kind is TermKind.REQUIRED_ANTI_AFFINITY
            required = held.kind is TermKind.REQUIRED_AFFINITY
            weight = sum((1 if required else term.weight) * held.times[term] for term in meaning)
            found.setdefault(held.topology_key, {})[held] = 1 if once else weight
    return found


@given(asked=ASKED, steps=STEPS)
def test_what_is_known_follows_pods_and_labels(asked, steps):
    """Pods come and go, and so do the labels that nodes have; the answer is that of all terms together."""
    holders, placed = TermHolders(2), Counter()
    for version, (comes, pod, label_keys) in enumerate(steps, 1):
        if comes or not placed:
            info, sign = PodInfo(pod), 1
        else:
            info, sign = next(iter(placed)), -1
        placed[info] += sign
        placed += Counter()
        holders.add(info.held, 0, sign)
        for keys, of in ((label_keys, version), (set(KEYS), -1)):
            holders.follow_label_keys(keys, of)
            about = at_once(holders.about(asked, {}))
            assert asked_anew(placed, asked, keys) == {key: of_key for key, of_key in about.items() if of_key}

    assert sum(holders.terms_by_namespace.values()) == sum(len(held.times) for held in holders.held())


@given(asked=ASKED, pods=st.lists(PLACED, max_size=6))
def test_what_is_known_follows_pods(asked, pods):
    """While the labels stay as they are, only what came is asked."""
    holders, placed = TermHolders(2), []
    holders.follow_label_keys(KEYS, 1)
    for pod in (*pods, *pods[:2]):
        info = PodInfo(pod)
        placed.append(info)
        holders.add(info.held, 1, 1)
        about = at_once(holders.about(asked, {}))
        assert asked_anew(placed, asked, KEYS) == {key: of_key for key, of_key in about.items() if of_key}
