"""`berth explain pod NAME`: each node, who turned it down and why, or what it scored; the attempts so far."""

import json
from datetime import UTC, datetime
from typing import Any

import click

from berth.cli.asking import Server, asks_a_server


@click.group()
def explain() -> None:
    """Say why a pod is where it is, or why it is nowhere."""


@explain.command()
@click.argument("name")
@click.option("-n", "--namespace", default="default", show_default=True)
@asks_a_server
@click.option("--nodes", default=10, show_default=True, help="How many nodes to show; 0 for all.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def pod(name: str, *, namespace: str, server: Server, nodes: int, output: str) -> None:
    """Explain a pod, as the cluster stands now."""
    answer = server.ask("/explain", namespace=namespace, name=name)
    if output == "json":
        click.echo(json.dumps(answer, indent=2))
    else:
        click.echo("\n".join(_lines(answer, nodes)))


def _lines(answer: dict[str, Any], limit: int) -> list[str]:
    lines = [f"pod {answer['pod']}, profile {answer['profile']}", *_whereabouts(answer), ""]
    lines += [_attempt(attempt) for attempt in answer["attempts"]]
    lines += ["", "tried on every node as the cluster stands now:"]
    if answer.get("message"):
        lines.append(f"  {answer['message']}")
    nodes = answer.get("nodes", [])
    shown = nodes[:limit] if limit else nodes
    lines += [f"  {_node(node)}" for node in shown]
    if len(nodes) > len(shown):
        lines.append(f"  and {len(nodes) - len(shown)} more nodes (--nodes 0 shows all)")
    return lines


def _whereabouts(answer: dict[str, Any]) -> list[str]:
    if answer["node"]:
        return [f"on node {answer['node']}"]
    queue = answer["queue"]
    if not queue:
        return ["being scheduled, or just gone"]
    held = f", held back by {queue['gatedBy']}" if queue["gatedBy"] else ""
    rejectors = ", ".join(queue["rejectedBy"])
    rejected = f", rejected by {rejectors}" if rejectors else ""
    return [f"waiting since {_time(queue['since'])} after {queue['attempts']} attempts{held}{rejected}"]


def _attempt(attempt: dict[str, Any]) -> str:
    where = f" on {attempt['node']} with score {attempt['score']}" if attempt["node"] else ""
    why = f": {attempt['message']}" if attempt["message"] else ""
    return (
        f"attempt {attempt['attempt']} at {_time(attempt['started_at'])}: {attempt['result']}{where}, "
        f"{attempt['feasible_nodes']} of {attempt['evaluated_nodes']} nodes fitted, "
        f"{attempt['cycle_milliseconds']:.1f} ms, trace {attempt['trace_id']}{why}"
    )


def _node(node: dict[str, Any]) -> str:
    if "total" not in node:
        return f"{node['name']}: no, {node['plugin'] or 'not looked at'}: {', '.join(node['reasons'])}"
    parts = ", ".join(f"{plugin} {score['weighted']}" for plugin, score in node["scores"].items())
    return f"{node['name']}: {node['total']} = {parts}"


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
