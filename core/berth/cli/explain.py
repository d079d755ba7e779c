"""`berth explain`: why a pod is where it is or nowhere, on a page that begins with cause and remedy."""

import json
from collections.abc import Iterator
from typing import Any

import click
import yaml

from berth.cli.asking import Server, asks_a_server

Json = dict[str, Any]

LAST_ATTEMPTS = 3


@click.group()
def explain() -> None:
    """Say why a pod is where it is, or why it is nowhere."""


@explain.command()
@click.argument("name")
@click.option("-n", "--namespace", default="default", show_default=True)
@asks_a_server
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
    name: str, *, namespace: str, server: Server, all_reasons: bool, proposals: bool, output: str
) -> None:
    """Explain a pod, as the cluster stands now."""
    answer = server.ask(
        "/explain",
        namespace=namespace,
        name=name,
        allReasons=_truth(all_reasons),
        proposals=_truth(proposals),
        wide=_truth(output != "text"),
    )
    if output in ("text", "wide"):
        click.echo("\n".join(page(answer, wide=output == "wide")))
    else:
        show_data(answer, output)


def _truth(value: bool) -> str:
    return "true" if value else "false"


def show_data(answer: Json, output: str) -> None:
    """The whole answer, as JSON or YAML."""
    click.echo(
        json.dumps(answer, indent=2) if output == "json" else yaml.safe_dump(answer, sort_keys=False).rstrip()
    )


def page(answer: Json, *, wide: bool) -> Iterator[str]:
    """The answer about a pod for people, line by line."""
    yield f"pod {answer['pod']}" + (f", profile {answer['profile']}" if answer["profile"] else "")
    yield f"Cause:  {answer['cause']}"
    if answer["remedy"]:
        yield f"Remedy: {answer['remedy']}"
    yield from _state(answer["state"])
    yield from _proposals(answer, wide=wide)
    if answer["nodes"] is not None:
        yield from _nodes(answer["nodes"], wide=wide)
    yield from _attempts(answer["attempts"] if wide else answer["attempts"][-LAST_ATTEMPTS:])


def _state(state: Json) -> Iterator[str]:
    yield ""
    facts = [("since", state["since"]), ("until", state["until"]), ("on node", state["node"])]
    if state["position"]:
        facts.append(("number", f"{state['position']} in the queue"))
    if state["attempts"]:
        facts.append(("after", f"{state['attempts']} attempts"))
    shown = ", ".join(f"{word} {fact}" for word, fact in facts if fact)
    yield f"State: {state['kind']}{f', {shown}' if shown else ''}"
    if state["rejectedBy"]:
        yield f"  rejected by {', '.join(state['rejectedBy'])} at the last attempt"
    for wait in state["waitsFor"]:
        until = f", until {wait['until']} at the latest" if wait["until"] else ""
        yield f"  waits for {wait['plugin']}{': ' if wait['message'] else ''}{wait['message']}{until}"
    if state["nomination"]:
        nomination = state["nomination"]
        leaving = f", where {nomination['leavingCount']} pods are being deleted"
        yield f"  nominated to {nomination['node']}{leaving}"
    for awaited in state["awaited"]:
        actions = ", ".join(awaited["actions"])
        yield f"  brought back for {awaited['plugin']} by {awaited['resource']}: {actions}"


def _proposals(answer: Json, *, wide: bool) -> Iterator[str]:
    if not answer["proposals"] and not answer["proposalsCutShort"]:
        return
    yield ""
    yield "What would make it fit (each tried):"
    for proposal in answer["proposals"]:
        more = proposal["nodeCount"] - len(proposal["nodes"])
        where = ", ".join(proposal["nodes"]) + (f" and {more} more" if more > 0 else "")
        yield f"  - {proposal['sentence']} Then it fits on {where}."
        if wide:
            target = proposal["target"]
            yield f"    {target['kind'].lower()} {target['name'] or '(new)'}: {json.dumps(proposal['patch'])}"
    if answer["proposalsCutShort"]:
        yield f"  not everything was tried: {answer['proposalsCutShort']}"


def _nodes(nodes: Json, *, wide: bool) -> Iterator[str]:
    yield ""
    yield f"Nodes, as the cluster stands now: it fits on {nodes['feasible']} of {nodes['total']}"
    if nodes["message"]:
        yield f"  {nodes['message']}"
    for group in nodes["groups"]:
        yield f"  {group['count']:>5}  {_why(group)}"
        more = group["count"] - len(group["nodes"])
        names = ", ".join(group["nodes"])
        if names:
            yield f"         {names}{f' and {more} more' if more > 0 else ''}"
    if nodes["groupsLeftOut"]:
        yield f"  and {nodes['groupsLeftOut']} more groups of nodes"
    for node in nodes["scored"]:
        own = "  <- the pod's node" if node["own"] else ""
        parts = ", ".join(f"{part['plugin']} {part['weighted']}" for part in node["parts"])
        sum_of = f" = {parts}" if wide and parts else ""
        yield f"  #{node['place']} {node['name']}: {node['total']}{sum_of}{own}"
    if nodes["scoredLeftOut"]:
        yield f"  and {nodes['scoredLeftOut']} more that fit"


def _why(group: Json) -> str:
    return "; ".join(f"{', '.join(each['reasons'])} ({each['plugin']})" for each in group["refusals"])


def _attempts(attempts: list[Json]) -> Iterator[str]:
    if attempts:
        yield ""
        yield "Last attempts:"
    for attempt in attempts:
        score = "" if attempt["score"] is None else f" with score {attempt['score']}"
        where = f" on {attempt['node']}{score}" if attempt["node"] else ""
        why = f": {attempt['message']}" if attempt["message"] else ""
        yield (
            f"  {attempt['attempt']} at {attempt['startedAt']}: {attempt['result']}{where}, "
            f"{attempt['feasibleNodes']} of {attempt['evaluatedNodes']} nodes fitted, "
            f"{attempt['cycleMilliseconds']:.1f} ms, trace {attempt['traceId']}{why}"
        )
