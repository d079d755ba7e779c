"""What a watcher learns of pods while a scheduler is at work, and what there is."""

import asyncio

from tests.pod_events import current_pods
from tests.suite import PATIENCE_SECONDS

LOOK_SECONDS = 0.02


class Seen:
    """What a watcher learns of pods: first words on why one does not fit, its nodes, its nominations."""

    def __init__(self):
        self.first, self.on, self.nominated = {}, {}, {}
        self.leaving, self.gone = set(), set()

    def look(self, kind, document):
        """Take an event in."""
        name, status = document["metadata"]["name"], document.get("status", {})
        if kind == "DELETED" or document["metadata"].get("deletionTimestamp"):
            self.leaving.add(name)
        if kind == "DELETED":
            self.gone.add(name)
            return
        if document["spec"].get("nodeName"):
            self.on.setdefault(name, document["spec"]["nodeName"])
        if status.get("nominatedNodeName"):
            self.nominated.setdefault(name, status["nominatedNodeName"])
        for condition in status.get("conditions", ()):
            if _turned_down(condition):
                conditions = {key: value for key, value in condition.items() if not key.startswith("last")}
                self.first.setdefault(name, conditions)

    def decided(self, name):
        """Whether a scheduler has looked at the pod."""
        return name in self.on or name in self.first


async def items(cluster, resource):
    """All objects of that kind."""
    found, _ = await current_pods(cluster.transport, resource)
    return found


async def until(claim, what):
    """Wait for that."""
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not claim():  # noqa: ASYNC110 - what the watch showed has no event
                await asyncio.sleep(LOOK_SECONDS)
    except TimeoutError:
        raise AssertionError(f"not in time: {what}") from None


def _turned_down(condition):
    """Whether that says why the pod has no node, in words that kube-scheduler has, too."""
    said = condition["type"] == "PodScheduled" and condition["status"] == "False"
    return said and condition.get("reason") not in OWN_REASONS


OWN_REASONS = ("WaitingAtPermit", "WaitingInPreBind")
"""Of events and conditions that only we write: about pods that wait for plugins after a node was chosen."""


def in_words(events, uids):
    """Each event, the oldest first, in words that do not change from run to run: (pod, reason, words).

    Those that kube-scheduler has none like are left out.
    """
    for event in sorted(events, key=lambda event: int(event["metadata"]["resourceVersion"])):
        if event["reason"] in OWN_REASONS:
            continue
        note = event["note"]
        for uid, name in uids.items():
            note = note.replace(uid, f"<{name}>")
        words = event["type"], event["action"], note, event["reportingController"], event["regarding"]["kind"]
        yield event["regarding"]["name"], event["reason"], words
