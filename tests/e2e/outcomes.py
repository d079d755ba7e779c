"""What became of a step, in words that do not depend on when, and how two outcomes differ."""

import copy
import json
import re

from berth.client.resources import EVENTS, POD_GROUPS, PODS, RESOURCE_CLAIMS
from tests.e2e.seen import in_words, items
from tests.e2e.watchers import conditions

SEVERAL = re.compile(r"0/([2-9]|\d\d) placements are available")
BROKEN_OFF = re.compile(r'(running \\"DynamicResources\\" filter plugin: )(?:[^"\\]|\\.)*')
PREEMPTOR = re.compile(r"(?<=Preempted by pod )<.*>")
PLACEMENT = re.compile(r"(?<=first placement status: )[^;]*")


async def outcome(cluster, seen, step):
    """What became of the step's pods and groups, of other pods on their account, and what events say."""
    pods = {}
    for each in step.of(PODS):
        name = each["metadata"]["name"]
        pods[name] = {
            "on": seen.node_of(name),
            "stated": seen.stated.get(("Pod", name, "PodScheduled"), []),
            "nominated": seen.nominated.get(name, ""),
            "extended": extended(seen.latest["Pod", name]),
        }
    groups = {
        name: seen.stated.get(("PodGroup", name, "PodGroupScheduled"), [])
        for name in (each["metadata"]["name"] for each in step.of(POD_GROUPS))
    }
    gone = sorted(seen.leaving())
    return {
        "pods": pods,
        "groups": groups,
        "gone": {name: conditions(seen.latest["Pod", name]) for name in gone},
        "events": stated(await items(cluster, EVENTS), seen.names, {*pods, *gone}),
        "anywhere": any("nodeSelector" not in each["spec"] for each in step.of(PODS)),
        "claims": allocated(await items(cluster, RESOURCE_CLAIMS)),
    }


def extended(pod):
    """Which of a claim made by the scheduler serves which container, but for the claim's name."""
    return pod.get("status", {}).get("extendedResourceClaimStatus", {}).get("requestMappings")


def stated(events, uids, about):
    """The first event of each reason on each of these pods, but not which preemptor was the first."""
    found = {}
    for name, reason, words in in_words(events, uids):
        if name in about:
            said = tuple(PREEMPTOR.sub("", word) for word in words) if reason == "Preempted" else words
            found.setdefault(f"{name} {reason}", said)
    return found


def allocated(claims):
    """What each claim has got for whom, but not when, and not under which names that chance has made."""
    found = {}
    for each in claims:
        status = each.get("status", {})
        allocation = {k: v for k, v in status.get("allocation", {}).items() if k != "allocationTimestamp"}
        for result in allocation.get("devices", {}).get("results", ()):
            if "shareID" in result:
                result["shareID"] = "drawn"
        metadata, users = each["metadata"], [user["name"] for user in status.get("reservedFor", ())]
        found[metadata.get("generateName") or metadata["name"]] = {"allocation": allocation, "for": users}
        if "generateName" in metadata:
            owners = [(owner["name"], owner.get("controller")) for owner in metadata["ownerReferences"]]
            made = {"spec": each["spec"], "annotations": metadata.get("annotations"), "owners": owners}
            found[metadata["generateName"]] |= made
    return found


def differences(theirs, ours, path=()):
    """Where two outcomes differ: (path, theirs, ours)."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for key in sorted(theirs.keys() | ours.keys()):
            yield from differences(theirs.get(key), ours.get(key), (*path, key))
    elif theirs != ours:
        yield "/".join(path), theirs, ours


def victims_by_their_own_priority(own, of_group, theirs, ours):
    """Whether kubernetes/kubernetes#139030 explains that others were evicted.

    `own` is the priority of each pod, or of its group where that is disrupted as a whole, `of_group` that of
    its group where the group is disrupted pod by pod;
    `theirs` and `ours` are the names of the victims. kube-scheduler 1.36 chooses by the pod's own priority,
    where the group's says otherwise.
    """
    more, less = theirs - ours, ours - theirs
    if not more | less:
        return False
    by_group = {name: of_group.get(name, own[name]) for name in more | less}
    mistaken = any(own[name] != by_group[name] for name in more | less)
    theirs_first = all(own[a] <= own[b] for a in more for b in less)
    ours_first = all(by_group[b] <= by_group[a] for a in more for b in less)
    return mistaken and theirs_first and ours_first


def comparable(theirs, ours):
    """Two outcomes of a step, reduced to what has to be the same: what was said first, and where it led.

    Whose message is written is left to chance where no placement will do, by the order in which they are
    tried, and where several nodes make an attempt break off. Of placements, ours have to be among theirs.
    """
    theirs, ours = copy.deepcopy(theirs), copy.deepcopy(ours)
    if any(stated and SEVERAL.match(stated[0]["message"]) for stated in theirs["groups"].values()):
        for name, pod in theirs["pods"].items():
            if any(stated in pod["stated"] for stated in ours["pods"][name]["stated"][:1]):
                for one in theirs, ours:
                    one["pods"][name].pop("stated")
                    one["events"].pop(f"{name} FailedScheduling", None)
    return _reduced(theirs), _reduced(ours)


def _reduced(outcome):
    for pod in outcome["pods"].values():
        pod["first"] = pod.pop("stated", [])[:1]
    for name, stated in outcome["groups"].items():
        first = [{**each, "message": _of_no_placement(each["message"])} for each in stated[:1]]
        outcome["groups"][name] = {
            "first": first,
            "scheduled": any(each["status"] == "True" for each in stated),
        }
    if outcome["anywhere"]:
        return json.loads(BROKEN_OFF.sub(r"\1", json.dumps(outcome)))
    return outcome


def _of_no_placement(message):
    return PLACEMENT.sub("", message) if SEVERAL.match(message) else message
