"""Fair shares of random trees of queues beside linear programs of their definition, solved by HiGHS.

Each tree sees pods come and end; at each steady state the shares of all queues are compared. The unit of
placement is a core.

    python -m tests.benchmarks fair_shares [--random TREES]
"""

import sys
import time
from random import Random

from berth_queues.fair_shares import fair_shares
from berth_queues.tree import Tree
from tests.benchmarks.tables import Table
from tests.exact_shares import ExactShares
from tests.random_queues import UNIT, arrive, random_tree

TREES, STATES = 1000, 3
MAX_ERROR = 0.01
"""Of a share, in units of placement."""


def run(options):
    """Compare the shares; exit with 1 where one is off by more than a hundredth of a unit."""
    largest, compared, ours, exact = 0.0, 0, 0.0, 0.0
    trees = options.random or TREES
    for seed in range(trees):
        random, demand = Random(seed), {}
        specs = random_tree(random)
        tree = Tree(specs)
        for _ in range(STATES):
            arrive(random, specs, demand)
            begun = time.process_time()
            shares = fair_shares(tree, {name: {"cpu": amount} for name, amount in demand.items()})
            middle = time.process_time()
            expected = ExactShares(specs, "cpu", demand).solve()
            ours, exact = ours + middle - begun, exact + time.process_time() - middle
            compared += len(expected)
            errors = (abs(shares[name].get("cpu", 0.0) - share) for name, share in expected.items())
            largest = max(largest, max(errors) / UNIT)
    title = f"Fair shares of {trees} random trees, {STATES} steady states each, beside HiGHS"
    table = Table(title, ["", "shares", "largest error, units", "CPU s", "CPU s of HiGHS"])
    table.add("queues", float(compared), f"{largest:.1e}", ours, exact)
    table.show()
    if largest > MAX_ERROR:
        sys.exit(1)
