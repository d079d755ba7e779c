"""Drawing lots, and the words that all drawn objects share."""

import random

HOST, ZONE, REGION = "kubernetes.io/hostname", "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
# Labels of nodes; nodes lack some of them. Those of NUMBERS have numbers as values.
ZONES, DISKS, RACKS, NUMBERS = "abc", ("ssd", "hdd"), ("r1", "r2", "r3", "r4"), ("1", "2", "4", "8")
TOPOLOGIES = (HOST, ZONE, REGION, "rack")
APPS, VERSIONS, TIERS = ("web", "db", "cache"), ("1", "2"), ("front", "back")
TEAMS = {"default": {}, "blue": {"team": "blue"}, "green": {"team": "green", "shared": "yes"}}
NAMESPACES = tuple(TEAMS)


class Chance(random.Random):
    """A source of chance that draws as objects need it."""

    def maybe(self, probability):
        """True that often."""
        return self.random() < probability

    def some(self, options, least, most):
        """Several different ones."""
        options = list(options)
        return self.sample(options, self.randint(least, min(most, len(options))))

    def one_in(self, weighted):
        """A key of the mapping, by its weight."""
        return self.choices(list(weighted), list(weighted.values()))[0]


def thing(kind, name, api_version="v1", namespace="", **fields):
    """An object of that kind."""
    metadata = {"name": name, "labels": {}} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}


def label_selector(chance):
    """A selector of pods: by labels, by all operators, of everything, of nothing."""
    form = chance.one_in({"labels": 5, "expressions": 4, "both": 1, "everything": 0.3, "nothing": 0.2})
    if form == "everything":
        return {}
    if form == "nothing":
        return None
    made = {}
    if form != "expressions":
        made["matchLabels"] = {"app": chance.choice(APPS)}
    if form != "labels":
        made["matchExpressions"] = [_pod_expression(chance) for _ in range(chance.choice((1, 1, 2)))]
    return made


def _pod_expression(chance):
    key, values = chance.choice((("app", APPS), ("version", VERSIONS), ("tier", TIERS)))
    operator = chance.choice(("In", "NotIn", "Exists", "DoesNotExist"))
    made = {"key": key, "operator": operator}
    return made | ({"values": chance.some(values, 1, 2)} if operator.endswith("In") else {})


def node_expression(chance):
    """A requirement on a node's labels."""
    key, values = chance.choice((("disk", DISKS), (ZONE, ZONES), ("rack", RACKS), ("cores", NUMBERS)))
    operators = ["In", "In", "NotIn", "Exists", "DoesNotExist"] + ["Gt", "Lt"] * 2 * (key == "cores")
    operator = chance.choice(operators)
    made = {"key": key, "operator": operator}
    if operator.endswith("In"):
        return made | {"values": chance.some(values, 1, 2)}
    return made | ({"values": [chance.choice(values)]} if operator in {"Gt", "Lt"} else {})


def node_term(chance, names):
    """A term of a node selector; `names` are the nodes there are."""
    made = {}
    if chance.maybe(0.15):
        operator = chance.choice(("In", "NotIn"))
        made["matchFields"] = [
            {"key": "metadata.name", "operator": operator, "values": [chance.choice(names)]}
        ]
    if not made or chance.maybe(0.5):
        made["matchExpressions"] = [node_expression(chance) for _ in range(chance.choice((1, 1, 2)))]
    return made
