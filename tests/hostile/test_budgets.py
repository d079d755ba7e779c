"""Disruption budgets are a user's, as the pods are that they mean; preemption looks at both."""

from berth.framework.mirrors.listers import Store
from berth.preemption.victims import CompiledBudgets
from berth.snapshot.pod_info import PodInfo
from tests.hostile.work import calls
from tests.unit.preemption.kit import budget, placed

WEB = {"app": "web"}
VICTIMS = [PodInfo(placed(f"p{i}", labels=WEB)) for i in range(50)]


def splitting(count):
    """What looks for the victims that a budget protects, each of whom every budget means."""
    store = Store()
    for i in range(count):
        store.put(budget(f"b{i}", WEB))
    budgets = CompiledBudgets(store)
    budgets.split(VICTIMS[:1])  # Pods that are labelled so are known now.
    return lambda: budgets.split(VICTIMS)


def test_budgets_are_not_multiplied_by_victims():
    assert calls(splitting(800)) <= 1.2 * calls(splitting(8))
