"""Queues in random trees, and what arrives in them."""

from berth_queues.tree import QueueSpec

UNIT = 1000
"""The unit of placement: a core, in thousandths."""


def random_tree(random, most=12):
    """Return queues of one tree by name, with quotas, limits, weights and priorities of every kind."""
    specs, depths = {"q0": QueueSpec("q0", quota=_some(random, 0.5, 40))}, {"q0": 1}
    for number in range(1, random.randint(2, most)):
        parent = random.choice([name for name, depth in depths.items() if depth < 4])
        name = f"q{number}"
        depths[name] = depths[parent] + 1
        specs[name] = QueueSpec(
            name,
            parent,
            quota=_some(random, 0.7, 30),
            borrowing_limit=_some(random, 0.3, 20),
            lending_limit=_some(random, 0.3, 20),
            limit=_some(random, 0.2, 50),
            weight=random.choice((0.0, 0.5, 1.0, 1.0, 2.0, 3.7)),
            priority=random.choice((0, 0, 0, 1, 5)),
        )
    return specs


def _some(random, chance, most):
    return {"cpu": random.randint(0, most) * UNIT} if random.random() < chance else {}


def arrive(random, specs, demand):
    """Let pods come in some queues and end in others."""
    for name in specs:
        if random.random() < 0.5:
            change = random.randint(-20, 30) * random.choice((UNIT, 250))
            demand[name] = max(0, demand.get(name, 0) + change)
