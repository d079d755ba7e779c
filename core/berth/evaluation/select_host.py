"""Choosing one of the nodes that scored highest.

Source: spec/core.md 4.11: any of them is right; an even chance spreads pods.
"""

import random

from berth.framework.node_scores import NodeScores


def select_host(scores: NodeScores, chance: random.Random) -> tuple[int, int]:
    """The row of the chosen node and its total."""
    best = int(scores.totals.max())
    ties = (scores.totals == best).nonzero()[0]
    pick = ties[0] if ties.size == 1 else ties[chance.randrange(ties.size)]
    return int(scores.rows[pick]), best
