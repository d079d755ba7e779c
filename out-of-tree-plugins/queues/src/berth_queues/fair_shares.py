"""The fair share of each queue of a tree: what it would have if the cluster were divided fairly now.

From the leaves up, each queue's demand is summed, bounded by its limits. From the root down, each queue's
part is divided among its children: first what they do not lend, then, of what they hold in common, each
child's quota as far as it wants it, then by priority and weight what is left (`filling.py`). Resources are
divided one by one, as KAI Scheduler and koordinator do; the order of queues weighs them together
(`dominant.py`).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from berth_queues.amounts import Amounts
from berth_queues.filling import Claim, fill
from berth_queues.tree import NO_AMOUNTS, Queue, Tree

Shares = dict[str, dict[str, float]]
"""By queue and resource. Units: as amounts, with fractions."""


@dataclass(frozen=True, slots=True)
class Division:
    """One resource of one tree, divided: demand and share of each queue by name."""

    resource: str
    demand: dict[str, float]
    share: dict[str, float]


def fair_shares(
    tree: Tree, demand: Mapping[str, Amounts], factors: Mapping[str, float] | None = None
) -> Shares:
    """Return each queue's fair share of each resource that its tree governs.

    `demand` is what the pods of each queue itself use and wait for; `factors` change weights, by queue.
    Cost: O(queues * log(queues) * resources).
    """
    shares: Shares = {name: {} for name in tree.queues}
    for root in tree.roots():
        for resource in root.subtree:
            for name, share in divide(root, resource, demand, factors or {}).share.items():
                shares[name][resource] = share
    return shares


def divide(
    root: Queue, resource: str, demand: Mapping[str, Amounts], factors: Mapping[str, float]
) -> Division:
    """Divide one resource of one tree."""
    division = Division(resource, {}, {})
    wanted = _demand(root, division, demand)
    division.share[root.name] = min(float(root.subtree.get(resource, 0)), wanted)
    _divide(root, division, demand, factors)
    return division


def _demand(queue: Queue, division: Division, demand: Mapping[str, Amounts]) -> float:
    """Return what the queue wants: its own pods' demand, and its children's beyond what they keep."""
    resource = division.resource
    wanted = float(demand.get(queue.name, NO_AMOUNTS).get(resource, 0))
    for child in queue.children:
        wanted += max(0.0, _demand(child, division, demand) - child.kept(resource))
    most = queue.most(resource)
    wanted = wanted if most is None else min(wanted, float(max(0, most)))
    division.demand[queue.name] = wanted
    return wanted


def _divide(
    queue: Queue, division: Division, demand: Mapping[str, Amounts], factors: Mapping[str, float]
) -> None:
    resource = division.resource
    own = float(demand.get(queue.name, NO_AMOUNTS).get(resource, 0))
    claims = [_claim(child, division, factors) for child in queue.children]
    # Pods of the queue itself share what no child has a quota of, as one more child would.
    claims.append(Claim(float(queue.spec.quota.get(resource, 0)) if own else 0.0, own))
    parts = fill(division.share[queue.name], claims)
    for child, part in zip(queue.children, parts, strict=False):
        division.share[child.name] = part + min(division.demand[child.name], float(child.kept(resource)))
        _divide(child, division, demand, factors)


def _claim(child: Queue, division: Division, factors: Mapping[str, float]) -> Claim:
    resource = division.resource
    wanted = max(0.0, division.demand[child.name] - child.kept(resource))
    weight = child.weight(resource) * factors.get(child.name, 1.0)
    return Claim(float(child.lent(resource)), wanted, weight, child.spec.priority)
