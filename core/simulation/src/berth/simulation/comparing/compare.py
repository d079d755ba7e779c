"""Compares configurations on one input: the outcome of each, where they first differ, and why.

    each variant --> simulated --> summary
                          |
                          +--> placements that differ from the first variant's --> simulated again, with the
                               scores of both nodes noted when those pods are decided on

Called by: `berth simulate compare`; a sweep's runs have the same summary.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, cast

import msgspec

from berth.config.catalogue import ExtensionPoint
from berth.config.loading import LoadedConfig
from berth.cycle.schedule_one import ScheduleOne
from berth.simulation.errors import InputError
from berth.simulation.reading.inputs import ClusterInput
from berth.simulation.running.engine import Simulation, after, simulate
from berth.simulation.running.options import SimulationOptions
from berth.simulation.running.outcome import API_VERSION, SimulationOutcome, SimulationSummary, summed_up
from berth.simulation.running.scores import NodeScore, ScoreNotes

MAX_EXPLAINED: Final = 10


class Variant(NamedTuple):
    """A configuration to compare with others."""

    cluster: ClusterInput
    options: SimulationOptions


class VariantChoice(msgspec.Struct, rename="camel", frozen=True):
    """The node that one variant chose for a pod, empty for none, and the scores of both nodes then."""

    variant: str
    node: str
    scores: dict[str, NodeScore] = {}


class PlacementDifference(msgspec.Struct, rename="camel", frozen=True):
    """A pod that two variants put on different nodes."""

    pod: str
    first: VariantChoice
    other: VariantChoice


class VariantComparison(msgspec.Struct, rename="camel", frozen=True, kw_only=True):
    """All variants compared with the first."""

    api_version: str = API_VERSION
    kind: str = "VariantComparison"
    variants: list[SimulationSummary]
    differing: dict[str, int]
    """How many pods each other variant puts on another node."""
    differences: list[PlacementDifference]
    """The first of them, in the order in which the first variant decided."""
    emptied: dict[str, list[str]]
    """Nodes that the first variant uses and each other one does not."""
    newly_used: dict[str, list[str]]
    """Nodes that each other variant uses and the first does not."""
    left_out: dict[str, int] = {}
    """Objects of the input that no decision of the first variant reads, by kind."""


def compare(variants: Mapping[str, Variant], *, explained: int = MAX_EXPLAINED) -> VariantComparison:
    """Simulate each variant, and explain up to `explained` differences between the first and each other one.

    Raises: InputError, PluginsError, BuildError.
    """
    outcomes = {name: simulate(*variant) for name, variant in variants.items()}
    (first, base), *others = outcomes.items()
    differing, differences = {}, []
    for name, outcome in others:
        pods = _apart(base, outcome)
        differing[name] = len(pods)
        differences += _explained(variants, (first, name), outcomes, pods[:explained])
    return VariantComparison(
        variants=[summed_up(name, outcome) for name, outcome in outcomes.items()],
        differing=differing,
        differences=differences,
        emptied={name: _without(base.nodes_in_use, other.nodes_in_use) for name, other in others},
        newly_used={name: _without(other.nodes_in_use, base.nodes_in_use) for name, other in others},
        left_out=base.left_out,
    )


def weighed(loaded: LoadedConfig, plugin: str, weight: int) -> LoadedConfig:
    """The configuration with a changed weight of a Score plugin, in each profile that has it.

    Raises: InputError where none has.
    """
    point, changed, there = ExtensionPoint.SCORE, [], False
    for profile in loaded.profiles:
        named = tuple((name, weight if name == plugin else held) for name, held in profile.points[point])
        there |= any(name == plugin for name, _ in named)
        changed.append(msgspec.structs.replace(profile, points={**profile.points, point: named}))
    if not there:
        raise InputError(f"--sweep: {plugin}: no profile scores by a plugin of that name")
    return msgspec.structs.replace(loaded, profiles=tuple(changed))


def _without(names: Sequence[str], others: Sequence[str]) -> list[str]:
    return sorted(set(names) - set(others))


def _apart(first: SimulationOutcome, other: SimulationOutcome) -> list[str]:
    """The pods on different nodes, in the order of the first variant's decisions."""
    one, two = first.placed_on, other.placed_on
    order = sorted(first.placements, key=lambda placement: placement.number)
    keys = [placement.pod for placement in order]
    keys += [pod for pod in two if pod not in one]
    return [key for key in dict.fromkeys(keys) if one.get(key) != two.get(key)]


def _explained(
    variants: Mapping[str, Variant],
    names: tuple[str, str],
    outcomes: Mapping[str, SimulationOutcome],
    pods: Sequence[str],
) -> list[PlacementDifference]:
    if not pods:
        return []
    placed = {name: outcomes[name].placed_on for name in names}
    wanted = {pod: [placed[n][pod] for n in names if pod in placed[n]] for pod in pods}
    scores = {name: _noted(variants[name], wanted) for name in names}

    def choice(name: str, pod: str) -> VariantChoice:
        return VariantChoice(name, placed[name].get(pod, ""), scores[name].get(pod, {}))

    return [PlacementDifference(pod, choice(names[0], pod), choice(names[1], pod)) for pod in pods]


def _noted(variant: Variant, wanted: Mapping[str, Sequence[str]]) -> dict[str, dict[str, NodeScore]]:
    notes: list[ScoreNotes] = []

    def begin(simulation: Simulation) -> None:
        notes.append(ScoreNotes(simulation.core, wanted))
        # The scheduling loop calls `schedule` and nothing else.
        simulation.core.schedule_one = cast("ScheduleOne", notes[0])

    async def end(simulation: Simulation) -> None:
        del simulation

    options = msgspec.structs.replace(variant.options, queues_every=0.0)
    after(variant.cluster, options, end, before=begin)
    return notes[0].found
