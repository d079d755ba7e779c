"""What stands in for the API server: objects in memory, a watch, and the faults that a test orders.

Only what lies beyond the wire is made up here: the scheduler's own PodWriter makes the calls.
"""

import asyncio
from collections import defaultdict, deque
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec.structs import replace

from berth.client.errors import ConflictError, NotFoundError
from berth.client.pods import Bound, Conflict, NotFound
from berth.objects.decode import from_document
from berth.objects.pods.pod import Pod
from berth.objects.pods.pod_decoding import pod_from_document
from tests.scenarios.kit.watch import Watch


@dataclass(frozen=True)
class Call:
    """One write of the scheduler, or a read."""

    verb: str
    pod: str
    what: Any = None


class MemoryApi:
    """Objects by kind and key. `calls` are the scheduler's, `grace_seconds` is how long deletion takes.

    A pod that is on no node goes at once, as with a real API server.
    """

    def __init__(self, clock):
        self.watch = Watch()
        self.calls = []
        self.grace_seconds = 0.0
        self._clock = clock
        self._objects = defaultdict(dict)
        self._version = 0

    def get(self, kind, key):
        """The object of that key as stored, None where there is none."""
        return self._objects[kind].get(key)

    def all(self, kind):
        """All objects of that kind."""
        return list(self._objects[kind].values())

    def put(self, obj):
        """Create or replace an object; gives it as stored. The watch has yet to tell of it."""
        self._version += 1
        stored = replace(obj, metadata=replace(obj.metadata, resource_version=str(self._version)))
        self._objects[type(obj)][obj.key] = stored
        self.watch.tell(type(obj), obj.key, stored)
        return stored

    def remove(self, obj):
        """Take an object away."""
        if self._objects[type(obj)].pop(obj.key, None) is not None:
            self.watch.tell(type(obj), obj.key, None)

    def begin_deletion(self, pod):
        """Delete a pod as a kubelet lets it: after its grace period."""
        if not pod.node_name or not self.grace_seconds:
            self.remove(pod)
        elif not pod.terminating:
            now = datetime.fromtimestamp(self._clock.wall(), UTC)
            self.put(replace(pod, metadata=replace(pod.metadata, deletion_timestamp=now)))
            asyncio.get_running_loop().call_later(self.grace_seconds, self.end_deletion, pod)

    def end_deletion(self, pod):
        """The kubelet is done with a pod, unless another took its name."""
        current = self.get(Pod, pod.key)
        if current is not None and current.uid == pod.uid:
            self.remove(current)
            self.watch.deliver()


class MemoryPods:
    """berth.client.pods.Pods on a MemoryApi. The watch shows a write a moment after its answer."""

    def __init__(self, api):
        self._api = api
        self._ordered = defaultdict(deque)
        self._gates, self._answers = {}, {}

    # Faults.

    def answer_next(self, verb, answer, *, lands=False):
        """Give the next call of that verb this answer, or raise it; it is done only if it `lands`."""
        self._ordered[verb].append((answer, lands))

    def hold(self, verb):
        """Let calls of that verb hang until they are released."""
        self._gates[verb] = asyncio.Event()

    def release(self, verb):
        """Let them go on."""
        self._gates.pop(verb).set()

    def hold_answers(self, verb):
        """Let calls of that verb be done, and their answers hang until they are released."""
        self._answers[verb] = asyncio.Event()

    def release_answers(self, verb):
        """Let the answers come."""
        self._answers.pop(verb).set()

    # What the scheduler calls.

    def bind(self, namespace, name, uid, node, *, answered, annotations=()):
        del annotations
        key = f"{namespace}/{name}"
        call = asyncio.ensure_future(self._call("bind", key, node, lambda: self._bind(key, uid, node)))
        call.add_done_callback(lambda call: answered(call.result()))

    async def patch_status(self, namespace, name, patch, *, uid="", version=""):
        key = f"{namespace}/{name}"

        def effect():
            found = self._found(key)
            if uid not in ("", found.uid) or version not in ("", found.metadata.resource_version):
                raise ConflictError(409, "Conflict", "the object has been modified")
            return self._patch(key, patch)

        await self._call("patch_status", key, patch, effect)

    async def patch_metadata(self, namespace, name, *, uid="", annotations=None, labels=None):
        del uid
        key, patch = f"{namespace}/{name}", {"annotations": annotations or {}, "labels": labels or {}}
        await self._call("patch_metadata", key, patch, lambda: self._patch(key, {"metadata": patch}))

    async def delete(self, namespace, name, uid):
        key = f"{namespace}/{name}"
        await self._call("delete", key, uid, lambda: self._delete(key, uid))

    async def get(self, namespace, name):
        key = f"{namespace}/{name}"
        await self._call("get", key, None, lambda: None)
        return msgspec.json.encode(self._found(key).written())

    async def _call(self, verb, key, what, effect):
        self._api.calls.append(Call(verb, key, what))
        await asyncio.sleep(0)
        if verb in self._gates:
            await self._gates[verb].wait()
        ordered, lands = self._ordered[verb].popleft() if self._ordered[verb] else (None, True)
        answer = effect() if lands else None
        asyncio.get_running_loop().call_soon(self._api.watch.deliver)
        if verb in self._answers:
            await self._answers[verb].wait()
        if isinstance(ordered, Exception):
            raise ordered
        return answer if ordered is None else ordered

    def _bind(self, key, uid, node):
        pod = self._api.get(Pod, key)
        if pod is None:
            return NotFound(f'pods "{key}" not found')
        if pod.uid != uid or pod.terminating:
            return Conflict(f"pod {key} is another one by now, or is being deleted")
        if pod.node_name:
            return Conflict(f'pod {key} is already assigned to node "{pod.node_name}"')
        self._api.put(replace(pod.placed_on(node), status=replace(pod.status, nominated_node_name="")))
        return Bound()

    def _patch(self, key, patch):
        self._api.put(pod_from_document(merged(msgspec.to_builtins(self._found(key).written()), patch)))

    def _delete(self, key, uid):
        pod = self._found(key)
        if pod.uid != uid:
            raise ConflictError(409, "Conflict", "the UID in the precondition is another's")
        self._api.begin_deletion(pod)

    def _found(self, key):
        pod = self._api.get(Pod, key)
        if pod is None:
            raise NotFoundError(404, "NotFound", f'pods "{key}" not found')
        return pod


class MemoryPodGroups:
    """A PodGroupWriter (framework/ports) on a MemoryApi; `failure` is what a write raises."""

    def __init__(self, api):
        self._api = api
        self.failure = None

    async def write_condition(self, group, condition):
        self._api.calls.append(Call("write_condition", group.key, condition))
        await asyncio.sleep(0)
        if self.failure is not None:
            raise self.failure
        current = self._api.get(type(group), group.key)
        if current is None or current.uid != group.uid:
            raise NotFoundError(404, "NotFound", f'podgroups "{group.key}" not found')
        patch = {"status": {"conditions": [msgspec.to_builtins(condition)]}}
        self._api.put(from_document(merged(msgspec.to_builtins(current), patch), type(group)))
        asyncio.get_running_loop().call_soon(self._api.watch.deliver)


def merged(document, patch):
    """The document with a strategic merge patch applied: conditions merge by type, null removes."""
    result = dict(document)
    for key, value in patch.items():
        if key == "conditions":
            changed = {condition["type"]: condition for condition in value}
            kept = [c for c in result.get(key, ()) if c["type"] not in changed]
            result[key] = [*kept, *changed.values()]
        elif isinstance(value, dict):
            result[key] = merged(result.get(key, {}), value)
        elif value is None:
            result.pop(key, None)
        else:
            result[key] = value
    return result
