"""What watchers of pods, pod groups and claims see, and when it last was something that matters."""

import asyncio
from dataclasses import dataclass, field

CONDITIONS = ("PodScheduled", "PodGroupScheduled", "DisruptionTarget")


@dataclass
class Seen:
    """What watchers have seen so far."""

    latest: dict = field(default_factory=dict)
    stated: dict = field(default_factory=dict)
    """Each condition's different values, in the order they came in."""
    gists: dict = field(default_factory=dict)
    nominated: dict = field(default_factory=dict)
    gone: set = field(default_factory=set)
    names: dict = field(default_factory=dict)
    at: float = 0.0

    def look(self, of, kind, document):
        """Take an event in, of an object of a kind."""
        key = of, document["metadata"]["name"]
        if gist(kind, document) != self.gists.get(key):
            self.gists[key] = gist(kind, document)
            self.at = asyncio.get_running_loop().time()
        self.names[document["metadata"]["uid"]] = document["metadata"]["name"]
        self.latest[key] = document
        if kind == "DELETED":
            self.gone.add(key)
            return
        for stated in conditions(document):
            known = self.stated.setdefault((*key, stated["type"]), [])
            if stated not in known:
                known.append(stated)
        nominated = document.get("status", {}).get("nominatedNodeName")
        if nominated:
            self.nominated.setdefault(key[1], nominated)

    def quiet(self):
        """For how long nothing has happened."""
        return asyncio.get_running_loop().time() - self.at

    def leaving(self):
        """The pods that are terminating."""
        return {
            name
            for (of, name), document in self.latest.items()
            if of == "Pod" and "deletionTimestamp" in document["metadata"] and (of, name) not in self.gone
        }

    def node_of(self, name):
        """Where the pod is, or empty."""
        return self.latest.get(("Pod", name), {"spec": {}})["spec"].get("nodeName", "")


def gist(kind, document):
    """What does not change where a cluster is at rest; a pod's condition may, from try to try."""
    statuses = [(each["type"], each["status"]) for each in conditions(document)]
    nominated = document.get("status", {}).get("nominatedNodeName")
    return (
        kind,
        document["spec"].get("nodeName"),
        nominated,
        "deletionTimestamp" in document["metadata"],
        statuses,
    )


def conditions(document):
    """What schedulers say of an object, but not when."""
    return [
        {key: value for key, value in condition.items() if not key.startswith("last")}
        for condition in document.get("status", {}).get("conditions", ())
        if condition["type"] in CONDITIONS
    ]
