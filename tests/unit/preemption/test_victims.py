"""Importance of pods and protection by budgets."""

import msgspec

from berth.framework.mirrors.listers import Store
from berth.objects.label_selector import LabelSelector, Requirement
from berth.preemption.victims import CompiledBudgets, Seniority, by_importance
from berth.snapshot.pod_info import PodInfo
from tests.unit.preemption.kit import NOW, budget, placed

WEB = {"app": "web"}


def split(pods, *budgets):
    """The names of the violating pods and of the others."""
    store = Store()
    for one in budgets:
        store.put(one)
    violating, others = CompiledBudgets(store).split([PodInfo(pod) for pod in pods])
    return [info.pod.name for info in violating], [info.pod.name for info in others]


P1, P2 = placed("p1", labels=WEB), placed("p2", labels=WEB)


def test_4_10_higher_priority_then_earlier_start_is_more_important():
    pods = [
        placed("new"),
        placed("young", started=NOW - 1),
        placed("old", started=NOW - 9),
        placed("high", priority=5),
    ]

    ordered = by_importance(map(PodInfo, pods), Seniority(NOW))
    assert ["high", "old", "young", "new"] == [info.pod.name for info in ordered]


def test_6_4_a_budget_protects_the_less_important_once_it_is_used_up():
    assert (["p2"], ["p1"]) == split([P1, P2], budget(selector=WEB, allowed=1))


def test_6_4_a_pod_that_is_already_disrupted_uses_nothing_up():
    assert (["p2"], ["p1"]) == split([P1, P2], budget(selector=WEB, allowed=0, disrupted=["p1"]))
    assert ([], ["p1", "p2"]) == split([P1, P2], budget(selector=WEB, allowed=1, disrupted=["p1"]))


def test_6_4_every_matching_budget_is_used_up_also_after_a_violation():
    budgets = budget("none", WEB, 0), budget("one", {"tier": "a"}, 1)
    both = placed("both", labels=WEB | {"tier": "a"})
    tier = placed("tier", labels={"tier": "a"})

    assert (["both", "tier"], []) == split([both, tier], *budgets)


def test_6_4_an_empty_a_missing_and_a_broken_selector_protect_nothing():
    broken = budget("broken", WEB)
    selector = LabelSelector({}, (Requirement("app", "Near", ("web",)),))
    broken = msgspec.structs.replace(broken, spec=msgspec.structs.replace(broken.spec, selector=selector))

    assert ([], ["p1"]) == split([P1], budget("empty", {}), budget("missing"), broken)


def test_6_4_a_pod_without_labels_is_never_protected():
    not_web = budget("b0", {})
    selector = LabelSelector({}, (Requirement("app", "NotIn", ("web",)),))
    not_web = msgspec.structs.replace(not_web, spec=msgspec.structs.replace(not_web.spec, selector=selector))

    assert (["db"], ["bare"]) == split([placed("bare"), placed("db", labels={"app": "db"})], not_web)


def test_6_4_budgets_of_other_namespaces_do_not_count():
    assert ([], ["p1"]) == split([P1], budget(selector=WEB, namespace="other"))


def test_a_budget_that_changes_counts_as_it_is_now():
    store = Store()
    store.put(budget(selector=WEB, allowed=0))
    budgets = CompiledBudgets(store)
    victim = PodInfo(P1)
    before = budgets.split([victim])
    store.put(budget(selector=WEB, allowed=1))

    assert (([victim], []), ([], [victim])) == (before, budgets.split([victim]))
