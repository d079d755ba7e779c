"""Stories about a pod that waits: a cluster, the pod, one event, and whether some hint missed it.

If the pod still waits after its backoff, and fits once the five-minute flush has it tried again, then no
plugin said QUEUE though the event made the pod fit.
"""

from typing import Any, NamedTuple

from hypothesis import strategies as st
from msgspec.structs import replace

from berth.objects.pods.pod import Pod
from tests.scenarios.kit.cluster import Cluster

BACKOFF_IS_OVER_SECONDS = 30
FLUSHED_SECONDS = 400
WAITS = {"scheduler_name": "default-scheduler", "preemption_policy": "Never"}


class Story(NamedTuple):
    """What is there, who waits, and what happens then: `event` and what it is about."""

    objects: list[Any]
    waiting: Pod
    event: str
    what: Any


def that_waits(pod):
    """The pod as one that the scheduler under test has to place, and that evicts no other."""
    return Pod.of(pod.metadata, replace(pod.spec, **WAITS), pod.status)


@st.composite
def mended(draw, sound, waiting, spare):
    """A story in which one event is all that a sound cluster lacks: an object comes, goes or changes.

    `sound` are strategies for the objects of such a cluster, each for all versions of one object.
    `spare` are strategies for objects that may be there in vain.
    """
    there = [draw(objects) for objects in sound]
    event = draw(st.sampled_from(["comes", "goes", "changes"]))
    if event == "goes":
        what = draw(st.one_of(spare))
        return Story([*there, what], that_waits(waiting), event, what)
    place = draw(st.integers(0, len(sound) - 1))
    before = [draw(sound[place])] if event == "changes" else []
    return Story([*there[:place], *before, *there[place + 1 :]], that_waits(waiting), event, there[place])


def happen(cluster, story):
    """Let an object come, change or go."""
    if story.event == "goes":
        cluster.remove(story.what)
    else:
        cluster.add(story.what)


async def missed(story, happen=happen, **cluster):
    """The plugins that rejected the pod and missed the event; none if it was tried in time or still waits."""
    cluster, namespace = Cluster(**cluster), story.waiting.namespace
    for obj in (*story.objects, story.waiting):
        cluster.add(obj)
    await cluster.tick(BACKOFF_IS_OVER_SECONDS)
    if cluster.where("waiting", namespace) != "pool":
        return []
    happen(cluster, story)
    await cluster.tick(BACKOFF_IS_OVER_SECONDS)
    if cluster.where("waiting", namespace) != "pool":
        return []
    rejectors = sorted(cluster.queued("waiting", namespace).unschedulable_plugins)
    await cluster.tick(FLUSHED_SECONDS)
    return rejectors if cluster.where("waiting", namespace) in {"assumed", "placed"} else []
