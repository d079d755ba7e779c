"""`berth explain pod NAME`: each node, who turned it down and why, or what it scored; the attempts so far."""

import json
import ssl
import urllib.parse
import urllib.request
from datetime import UTC, datetime
from typing import Any
from urllib.error import HTTPError, URLError

import click

from berth.cli.failing import fail

TIMEOUT_SECONDS = 30.0


@click.group()
def explain() -> None:
    """Say why a pod is where it is, or why it is nowhere."""


@explain.command()
@click.argument("name")
@click.option("-n", "--namespace", default="default", show_default=True)
@click.option(
    "--server", default="https://127.0.0.1:10259", show_default=True, help="The scheduler's secure port."
)
@click.option("--token", default="", help="A bearer token that may get /explain.")
@click.option("--nodes", default=10, show_default=True, help="How many nodes to show; 0 for all.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option(
    "--insecure-skip-tls-verify",
    "insecure",
    is_flag=True,
    help="Take any certificate, such as the one the scheduler makes for itself.",
)
def pod(
    name: str, *, namespace: str, server: str, token: str, nodes: int, output: str, insecure: bool
) -> None:
    """Explain a pod, as the cluster stands now."""
    answer = _fetch(server, namespace, name, token, insecure=insecure)
    if output == "json":
        click.echo(json.dumps(answer, indent=2))
    else:
        click.echo("\n".join(_lines(answer, nodes)))


def _fetch(server: str, namespace: str, name: str, token: str, *, insecure: bool) -> dict[str, Any]:
    query = urllib.parse.urlencode({"namespace": namespace, "name": name})
    context = ssl._create_unverified_context() if insecure else None  # noqa: S323, SLF001 - asked for by flag
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    request = urllib.request.Request(f"{server}/explain?{query}", headers=headers)  # noqa: S310 - the user's own URL
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS, context=context) as response:  # noqa: S310 - as above
            answer: dict[str, Any] = json.load(response)
            return answer
    except HTTPError as error:
        fail(_message(error))
    except (URLError, OSError) as error:
        reason = getattr(error, "reason", error)
        fail(f"{server}: {reason}: name the scheduler's secure port with --server")


def _message(error: HTTPError) -> str:
    try:
        return str(json.load(error).get("message") or error)
    except ValueError:
        return str(error)


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
