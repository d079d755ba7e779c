"""Plugins with one usual mistake each, as a process: python -m tests.unit.conformance.mistakes NAME."""

# ruff: noqa: ARG002 - the SDK gives the methods their parameters

import sys

import numpy as np

from berth_sdk import Plugin, main


class TooShort(Plugin):
    """Scores all nodes but the last."""

    name = "too-short"

    def score_nodes(self, pod, nodes):
        return np.zeros(len(nodes) - 1, np.int64)


class AskedOnly(Plugin):
    """Scores the nodes that are asked about, and no others."""

    name = "asked-only"

    def score_nodes(self, pod, nodes):
        return np.array([10 for _ in nodes.asked()], np.int64)


class Negative(Plugin):
    """Counts the pods on a node below 0."""

    name = "negative"
    wants_pods = True

    def score_nodes(self, pod, nodes):
        return np.array([-len(nodes.pods_on(node.name)) for node in nodes])


class KeepsState(Plugin):
    """Scores nodes in turns."""

    name = "keeps-state"
    turn = 0

    def score(self, pod, node):
        self.turn += 1
        return self.turn % 7


class OrderMatters(Plugin):
    """Keeps the first pod of an app on large nodes, by the order in which it was asked about pods."""

    name = "order-matters"

    def __init__(self):
        self.numbers = {}

    def score(self, pod, node):
        number = self.numbers.setdefault(pod.uid, len(self.numbers))
        return 100 // (1 + number)


class Unchecked(Plugin):
    """Takes whatever arguments it is given."""

    name = "unchecked"
    weight = 1

    def configure(self, arguments, profile):
        self.weight = arguments.get("weight", 1)

    def score(self, pod, node):
        return self.weight


MISTAKES = {each.name: each for each in (TooShort, AskedOnly, Negative, KeepsState, OrderMatters, Unchecked)}

if __name__ == "__main__":
    sys.exit(main(MISTAKES[sys.argv.pop()]()))
