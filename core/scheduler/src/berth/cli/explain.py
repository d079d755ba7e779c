"""`berth explain`: why a pod is where it is or nowhere, on a page that begins with cause and remedy."""

from functools import partial

import click

from berth.aggregated_api.kinds import NODE, POD, POD_GROUP, PROFILE
from berth.aggregated_api.text_pages import node_page, page, pod_group_page, profile_page
from berth.cli.asking.reaching import (
    Explanations,
    asks_for_explanations,
    complete_namespace,
    complete_node,
    complete_pod,
    complete_pod_group,
)
from berth.cli.explained import overview_output, show

in_a_namespace = click.option(
    "-n",
    "--namespace",
    default="",
    help="That of the kubeconfig's context if not given.",
    shell_complete=complete_namespace,
)
"""The option of the commands about objects in namespaces."""


@click.group()
def explain() -> None:
    """Say why a pod is where it is, or why it is nowhere."""


@explain.command()
@click.argument("name", shell_complete=complete_pod)
@in_a_namespace
@asks_for_explanations
@click.option(
    "--all-reasons",
    is_flag=True,
    help="Every plugin that would turn a node down, and not only the first of each.",
)
@click.option(
    "--proposals/--no-proposals",
    default=True,
    show_default=True,
    help="Look for changes that would make the pod fit, each tried by the scheduler's engine.",
)
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "wide", "json", "yaml"]),
    default="text",
    show_default=True,
    help="A page; the same with scores by plugin, patches and more names; or the whole answer as data.",
)
def pod(
    name: str, *, namespace: str, explanations: Explanations, all_reasons: bool, proposals: bool, output: str
) -> None:
    """Explain a pod, as the cluster stands now."""
    answer = explanations.of(
        POD,
        name,
        namespace,
        allReasons=_truth(all_reasons),
        proposals=_truth(proposals),
        wide=_truth(output != "text"),
    )
    show(answer, output, partial(page, wide=output == "wide"))


@explain.command()
@click.argument("name", shell_complete=complete_pod_group)
@in_a_namespace
@asks_for_explanations
@overview_output
def podgroup(name: str, *, namespace: str, explanations: Explanations, output: str) -> None:
    """Explain a PodGroup: where its pods stand, and what those lack that have no node."""
    show(explanations.of(POD_GROUP, name, namespace), output, pod_group_page)


@explain.command()
@click.argument("name", shell_complete=complete_node)
@asks_for_explanations
@overview_output
def node(name: str, *, explanations: Explanations, output: str) -> None:
    """Explain a node: what is free on it, which waiting pods it would take, and what keeps the others off."""
    show(explanations.of(NODE, name), output, node_page)


@explain.command()
@click.argument("name", required=False)
@asks_for_explanations
@overview_output
def profile(name: str | None, *, explanations: Explanations, output: str) -> None:
    """Explain a profile: what the last thousand of its pods met.

    Without NAME it is default-scheduler, or else the only profile.
    """
    show(explanations.of_profile(PROFILE, name), output, profile_page)


def _truth(value: bool) -> str:
    return "true" if value else "false"
