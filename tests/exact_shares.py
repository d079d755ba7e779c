"""Fair shares by linear programs, from their definition and from queues as written.

At each queue the smallest weighted gain of those that may still gain is maximized by HiGHS; those whose
bound has a price are held there, and the others go on. Deliberately slow, and independent of
`berth_queues.tree`'s sums.
"""

import highspy

NONE = 1e-7


class ExactShares:
    """One resource of the queues of one tree; `demand` is that of each queue's own pods."""

    def __init__(self, specs, resource, demand):
        self.specs, self.resource, self.demand = specs, resource, demand
        self.children = {name: [] for name in specs}
        for name, spec in specs.items():
            if spec.parent:
                self.children[spec.parent].append(name)
        self.shares = {}

    def solve(self):
        """Return the share of each queue."""
        (root,) = (name for name, spec in self.specs.items() if not spec.parent)
        self._divide(root, min(self.subtree(root), self.wanted(root)))
        return self.shares

    def subtree(self, name):
        return self.specs[name].quota.get(self.resource, 0) + sum(map(self.lent, self.children[name]))

    def lent(self, name):
        whole = self.subtree(name)
        return min(whole, self.specs[name].lending_limit.get(self.resource, whole))

    def kept(self, name):
        return self.subtree(name) - self.lent(name) if self.specs[name].parent else 0

    def beyond(self, name):
        """What a queue wants that it does not keep for itself."""
        return max(0, self.wanted(name) - self.kept(name))

    def wanted(self, name):
        spec, bounds = self.specs[name], []
        if self.resource in spec.borrowing_limit:
            bounds.append(self.subtree(name) + spec.borrowing_limit[self.resource])
        if self.resource in spec.limit:
            bounds.append(spec.limit[self.resource])
        return min([self.demand.get(name, 0) + sum(map(self.beyond, self.children[name])), *bounds])

    def _divide(self, name, amount):
        self.shares[name] = amount
        children, own = self.children[name], self.demand.get(name, 0)
        claims = [
            (self.lent(each), self.beyond(each), self.specs[each].weight, self.specs[each].priority)
            for each in children
        ]
        claims.append((self.specs[name].quota.get(self.resource, 0) if own else 0, own, 1.0, 0))
        parts = divided(amount, claims)
        for each, part in zip(children, parts, strict=False):
            self._divide(each, part + min(self.wanted(each), self.kept(each)))


def divided(amount, claims):
    """Divide an amount among claims (guarantee, limit, weight, priority)."""
    base = [min(guarantee, limit) for guarantee, limit, _, _ in claims]
    if sum(base) >= amount:
        return max_min(
            amount, [0.0] * len(claims), [(part, weight) for part, weight in zip(base, base, strict=True)]
        )
    for priority in sorted({claim[3] for claim in claims}, reverse=True):
        bounds = [
            (limit, weight) if band == priority and weight > 0 else (part, 0)
            for part, (_, limit, weight, band) in zip(base, claims, strict=True)
        ]
        base = max_min(amount, base, bounds)
    return base


def max_min(amount, base, bounds):
    """Return the lexicographic maximum of the gains over `base`, each by its weight, up to each bound."""
    parts = list(base)
    active = {
        index for index, (bound, weight) in enumerate(bounds) if weight > 0 and bound - base[index] > NONE
    }
    while active and amount - sum(parts) > NONE:
        level, priced = _level(amount, base, bounds, parts, active)
        for index in active:
            parts[index] = base[index] + level * bounds[index][1]
        if not priced:
            return parts
        active -= priced
    return parts


def _level(amount, base, bounds, parts, active):
    """Return the highest level that all active ones reach, and those whose bound prevents more."""
    model, infinity = highspy.Highs(), highspy.kHighsInf
    model.setOptionValue("output_flag", False)
    order = sorted(active)
    model.addVar(0.0, infinity)
    for index in order:
        model.addVar(0.0, float(bounds[index][0]))
    model.changeColCost(0, -1.0)
    for column, index in enumerate(order, start=1):
        model.addRow(float(base[index]), infinity, 2, [column, 0], [1.0, -float(bounds[index][1])])
    held = sum(part for index, part in enumerate(parts) if index not in active)
    model.addRow(
        -infinity, float(amount - held), len(order), list(range(1, len(order) + 1)), [1.0] * len(order)
    )
    model.run()
    assert model.getModelStatus() == highspy.HighsModelStatus.kOptimal
    solution = model.getSolution()
    if abs(solution.row_dual[len(order)]) > NONE:
        return solution.col_value[0], set()  # the amount itself is used up
    duals = solution.row_dual
    return solution.col_value[0], {index for row, index in enumerate(order) if abs(duals[row]) > NONE}
