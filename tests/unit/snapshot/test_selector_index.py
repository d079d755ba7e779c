"""What may match is found without asking everybody."""

from hypothesis import given
from hypothesis import strategies as st

from berth.objects.label_selector import Requirement, Selector
from berth.snapshot.placed.selector_index import MANY_LABELS, ByLabels, BySelector

WORDS = st.sampled_from(["a", "b", "c"])
LABELS = st.dictionaries(WORDS, WORDS, max_size=3)
SELECTORS = st.lists(
    st.builds(
        Requirement,
        WORDS,
        st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist"]),
        st.lists(WORDS, min_size=1, max_size=3).map(tuple),
    ),
    max_size=3,
).map(lambda requirements: Selector(tuple(requirements)))


@given(selectors=st.lists(SELECTORS, max_size=6), gone=st.sets(st.integers(0, 5)), labels=LABELS)
def test_selectors_for_labels(selectors, gone, labels):
    """Every selector that matches is among the candidates, once; what was taken out is not."""
    index = BySelector()
    for number, selector in enumerate(selectors):
        index.add(number, selector.rules)
    for number in gone & set(range(len(selectors))):
        index.discard(number, selectors[number].rules)
    found = list(index.candidates(labels))

    assert len(set(found)) == len(found)
    left = [number for number in range(len(selectors)) if number not in gone]
    assert {number for number in left if selectors[number].matches(labels)} <= set(found) <= set(left)


@given(
    things=st.lists(LABELS, max_size=6),
    gone=st.sets(st.integers(0, 5)),
    selector=SELECTORS,
    many_labels=st.sampled_from([1, MANY_LABELS]),
)
def test_labels_for_a_selector(things, gone, selector, many_labels):
    """What the selector matches is found, once, and nothing else; what was taken out is not."""
    index = ByLabels(many_labels)
    for number, labels in enumerate(things):
        index.add(number, labels)
    for number in gone & set(range(len(things))):
        index.discard(number)
    found = list(index.matching(selector.rules))

    assert len(set(found)) == len(found)
    left = [number for number in range(len(things)) if number not in gone]
    assert {number for number in left if selector.matches(things[number])} == set(found)


def test_a_named_value_narrows_the_search():
    """Selectors that name another value, and things that have another, are not asked."""
    named = Selector((Requirement("app", "In", ("web",)),))
    selectors, labels = BySelector(), ByLabels()
    selectors.add("web", named.rules)
    labels.add("db", {"app": "db"})

    assert [] == list(selectors.candidates({"app": "db"}))
    assert [] == list(labels.matching(named.rules))
