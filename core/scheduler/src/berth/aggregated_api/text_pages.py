"""Explanations as people read them: what `berth explain` and `berth queue` print, and the live page shows.

Called by: pages, for who asks for text; cli.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Final

from berth.aggregated_api.kinds import NODE, POD, POD_GROUP, PROFILE, QUEUE, ExplainKind
from berth.framework.pluralize import pluralize
from berth.out_of_tree.queueing.requeue_events import REQUEUE_EVENT_SUFFIX

Json = dict[str, Any]

LAST_ATTEMPTS = 3


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
    if wide and answer.get("release"):
        yield f"Decided as kube-scheduler {answer['release']}"
    yield from _attempts(answer["attempts"] if wide else answer["attempts"][-LAST_ATTEMPTS:])


def _state(state: Json) -> Iterator[str]:
    yield ""
    facts = [("since", state["since"]), ("until", state["until"]), ("on node", state["node"])]
    if state["position"]:
        facts.append(("number", f"{state['position']} in the queue"))
    if state["attempts"]:
        facts.append(("after", pluralize(state["attempts"], "attempt")))
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
    yield from _awaited(state["awaited"])


def _awaited(events: list[Json]) -> Iterator[str]:
    """The events that bring the pod back: resources with the same actions on one line."""
    resources: dict[tuple[str, str], list[str]] = {}
    for event in events:
        resources.setdefault((event["plugin"], ", ".join(event["actions"])), []).append(event["resource"])
    for (plugin, actions), names in resources.items():
        objects = [name for name in names if not name.endswith(REQUEUE_EVENT_SUFFIX)]
        if objects:
            yield f"  brought back for {plugin} by {actions} of {', '.join(objects)}"
        if len(objects) < len(names):
            yield f"  brought back for {plugin} when the plugin says so"


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
    if nodes.get("refusals"):
        yield f"  turned down before any node was looked at: {_why(nodes)}"
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


def _why(refused: Json) -> str:
    return "; ".join(f"{', '.join(each['reasons'])} ({each['plugin']})" for each in refused["refusals"])


def _attempts(attempts: list[Json]) -> Iterator[str]:
    if attempts:
        yield ""
        yield "Last attempts:"
    for attempt in attempts:
        score = "" if attempt["score"] is None else f" with score {attempt['score']}"
        where = f" on {attempt['node']}{score}" if attempt["node"] else ""
        trace = f", trace {attempt['traceId']}" if attempt["traceId"] else ""
        why = f": {attempt['message']}" if attempt["message"] else ""
        yield (
            f"  {attempt['attempt']} at {attempt['startedAt']}: {attempt['result']}{where}, "
            f"{_fitted(attempt)}, {attempt['cycleMilliseconds']:.1f} ms{trace}{why}"
        )
        for failure in attempt["ignored"]:
            yield f"    failed and was ignored, as the failure policy says: {failure}"


def _fitted(attempt: Json) -> str:
    if attempt["evaluatedNodes"]:
        return f"{attempt['feasibleNodes']} of {attempt['evaluatedNodes']} nodes fitted"
    why = attempt["notEvaluated"]
    return f"no node was evaluated{f': {why}' if why else ''}"


def pod_group_page(answer: Json) -> Iterator[str]:
    """The answer about a group, line by line."""
    least = "" if answer["minCount"] is None else f", at least {answer['minCount']} at once"
    pods = pluralize(answer["pods"], "pod")
    yield f"podgroup {answer['group']}: {pods}, {answer['scheduled']} with a node{least}"
    yield f"Cause:  {answer['cause']}"
    if answer["states"]:
        yield "States: " + ", ".join(f"{kind} {count}" for kind, count in sorted(answer["states"].items()))
    for one in answer["tree"]:
        below = "groups" if one["type"] == "compositepodgroup" else "pods"
        counts = f"{one['there']} of {one['needed']} {below}"
        placed = f"{one['scheduled']} of {one['pods']} pods with a node"
        lacks = f": {one['lacks']}" if one["lacks"] else ""
        yield f"{'  ' * one['level']}{one['type']} {one['group']}: {counts}, {placed}{lacks}"
    for alike in answer["classes"]:
        yield ""
        find = "1 pod finds" if alike["count"] == 1 else f"{alike['count']} pods find"
        yield f"{find} no node beside the others: {', '.join(alike['pods'])}"
        yield f"  {alike['cause']}"
        if alike["remedy"]:
            yield f"  Remedy for one of them: {alike['remedy']}"
    if answer["cutShort"]:
        yield f"not everything was tried: {answer['cutShort']}"


def node_page(answer: Json) -> Iterator[str]:
    """The answer about a node, line by line."""
    cordoned = ", cordoned" if answer["unschedulable"] else ""
    yield f"node {answer['node']}: {answer['pods']} of {answer['allowedPods']} pods{cordoned}"
    yield answer["cause"]
    for taint in answer["taints"]:
        yield f"  taint {taint}"
    for amount in answer["amounts"]:
        yield f"  {amount['resource']}: {amount['free']} free of {amount['allocatable']}"
    if answer["nominated"]:
        yield f"  promised to {', '.join(answer['nominated'])}"
    for alike in answer["classes"]:
        verdict = "would fit" if alike["fits"] else f"kept off: {_why(alike)}"
        yield f"  {alike['count']:>5}  {verdict}"
        yield f"         {', '.join(alike['pods'])}"
    if answer["classesLeftOut"]:
        yield f"  and {answer['classesLeftOut']} more kinds of pods"
    if answer["cutShort"]:
        yield f"not everything was tried: {answer['cutShort']}"


def profile_page(answer: Json) -> Iterator[str]:
    """The answer about a profile, line by line."""
    yield f"profile {answer['profile']}"
    yield answer["cause"]
    yield from _counts("Rejected by:", answer["rejectedBy"])
    yield from _counts("Messages:", answer["messages"])
    yield "Plugins:"
    for point, plugins in answer["plugins"].items():
        if plugins:
            yield f"  {point}: {', '.join(plugins)}"
    if answer["extenders"]:
        yield f"  extenders: {', '.join(answer['extenders'])}"


def queue_page(answer: Json) -> Iterator[str]:
    """The queue, line by line."""
    yield f"profiles {', '.join(answer['profiles'])}"
    yield ", ".join(f"{place} {count}" for place, count in answer["counts"].items())
    if answer["longestWait"]:
        yield f"waits longest: {_queued(answer['longestWait'])}"
    for title, pods in (("Next:", answer["active"]), ("Backing off:", answer["backingOff"])):
        if pods:
            yield title
        for waiting in pods:
            yield f"  {_queued(waiting)}"
    yield from _counts("Unschedulable, rejected by:", answer["unschedulable"])
    yield from _counts("Kept out by:", answer["gated"])


def _queued(waiting: Json) -> str:
    until = f", until {waiting['until']}" if waiting["until"] else ""
    return (
        f"{waiting['pod']} (priority {waiting['priority']}) since {waiting['since']}, "
        f"{pluralize(waiting['attempts'], 'attempt')}{until}"
    )


def _counts(title: str, counts: list[Json]) -> Iterator[str]:
    if counts:
        yield title
    for count in counts:
        yield f"  {count['pods']:>5}  {count['what']}  ({', '.join(count['examples'])})"


PAGES: Final[Mapping[ExplainKind, Callable[[Json], Iterable[str]]]] = {
    POD: partial(page, wide=False),
    POD_GROUP: pod_group_page,
    NODE: node_page,
    PROFILE: profile_page,
    QUEUE: queue_page,
}
"""The page about each kind, as the commands print it without options."""
