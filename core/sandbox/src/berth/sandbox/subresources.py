"""Binding, eviction, scale: the subresources that are more than a part of their object.

Source: pkg/registry/core/pod/storage/{storage,eviction}.go, pkg/registry/apps/*/storage (v1.36).
"""

from typing import Any

from berth.objects.selector_text import match_label_selector
from berth.sandbox.bodies import content
from berth.sandbox.errors import ApiError, not_supported, required
from berth.sandbox.kinds.resource import ServedResource
from berth.sandbox.patches.json_patch import json_patch, merge_patch
from berth.sandbox.request import CompleteAnswer, ReceivedRequest, json_response
from berth.sandbox.rest import MODIFIED_TEXT, Deletion, RestStorage
from berth.sandbox.store import Json, StoredObject, decode

_SUCCESS: Json = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


def _pods(rest: RestStorage) -> ServedResource:
    found = rest.catalogue.get("", "v1", "pods")
    assert found is not None
    return found


def bind(
    rest: RestStorage, request: ReceivedRequest, namespace: str, name: str, binding: Json
) -> CompleteAnswer:
    """Assign a pod to a node, once.

    Raises: ApiError when the pod is not there, not the one meant, bound, gated or on its way out.
    """
    target, metadata = binding.get("target") or {}, binding.get("metadata") or {}
    _check_name(name, binding, "Binding")
    _check_target(target)
    pods = _pods(rest)
    entry = rest.read(pods, namespace, name)
    pod = entry.decode()
    _check_bindable(pod, entry.key, metadata)
    pod["spec"]["nodeName"] = target["name"]
    _merge_metadata(pod["metadata"], metadata)
    status = pod.setdefault("status", {})
    # A nomination has done its work once the pod is bound.
    status.pop("nominatedNodeName", None)
    _set_scheduled(status, rest.now())
    written = entry if request.dry_run else rest.collection(pods).put(entry.key, pod)
    return json_response(_success(rest, written), 201)


def _success(rest: RestStorage, written: StoredObject) -> Json:
    """The Status of a pod's subresource, with the resource version where servers of the release say it."""
    if not rest.catalogue.shape.says_what_was_written:
        return _SUCCESS
    return {**_SUCCESS, "metadata": {"resourceVersion": str(written.revision)}}


def _check_name(name: str, document: Json, kind: str) -> None:
    if (document.get("metadata") or {}).get("name") != name:
        raise ApiError.bad_request(f"name in URL does not match name in {kind} object")


def _check_target(target: Json) -> None:
    wrong = None
    if target.get("kind") not in (None, "", "Node"):
        wrong = not_supported("target.kind", target["kind"], ("Node", "<empty>"))
    elif not target.get("name"):
        wrong = required("target.name")
    if wrong is not None:
        # Bindings are validated where errors have no status of their own.
        raise ApiError(500, "", str(wrong))


def _check_bindable(pod: Json, key: str, metadata: Json) -> None:
    uid, version = metadata.get("uid"), metadata.get("resourceVersion")
    found = pod["metadata"]
    name = found["name"]
    for what, wanted, actual in (
        ("UID", uid, found["uid"]),
        ("ResourceVersion", version, found["resourceVersion"]),
    ):
        if wanted and wanted != actual:
            raise ApiError.precondition_failed("pods", "", key, what=what, wanted=wanted, found=actual)
    why = ""
    if found.get("deletionTimestamp"):
        why = f"pod {name} is being deleted, cannot be assigned to a host"
    elif pod["spec"].get("nodeName"):
        why = f'pod {name} is already assigned to node "{pod["spec"]["nodeName"]}"'
    elif pod["spec"].get("schedulingGates"):
        why = f"pod {name} has non-empty .spec.schedulingGates"
    if why:
        raise ApiError.conflict("pods/binding", "", name, why)


def _merge_metadata(metadata: Json, extra: Json) -> None:
    for field in ("labels", "annotations"):
        if extra.get(field):
            metadata[field] = {**metadata.get(field, {}), **extra[field]}


def _set_scheduled(status: Json, now: str) -> None:
    others = [condition for condition in status.get("conditions", ()) if condition["type"] != "PodScheduled"]
    scheduled = {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": now}
    status["conditions"] = [*others, scheduled]


def evict(
    rest: RestStorage, request: ReceivedRequest, namespace: str, name: str, eviction: Json
) -> CompleteAnswer:
    """Delete a pod if the disruption budgets that select it allow that; its condition says why it goes.

    Raises: ApiError (429) when one does not.
    """
    _check_name(name, eviction, "Eviction")
    pods = _pods(rest)
    entry = rest.read(pods, namespace, name)
    pod = entry.decode()
    options = eviction.get("deleteOptions") or {}
    dry_run = request.dry_run or bool(options.get("dryRun"))
    if pod.get("status", {}).get("phase") not in ("Succeeded", "Failed", "Pending"):
        _take_disruption(rest, namespace, name, pod["metadata"].get("labels") or {}, dry_run=dry_run)
    if not dry_run and not pod["metadata"].get("deletionTimestamp"):
        entry = rest.change(pods, namespace, name, lambda one: _set_evicted(one, rest.now()))
    preconditions = options.get("preconditions") or {}
    deletion = Deletion(
        options.get("gracePeriodSeconds"),
        preconditions.get("uid") or "",
        preconditions.get("resourceVersion") or "",
        dry_run,
    )
    last, _ = rest.delete(pods, entry, deletion)
    return json_response(_success(rest, last), 201)


def _set_evicted(pod: Json, now: str) -> None:
    status = pod.setdefault("status", {})
    others = [one for one in status.get("conditions", ()) if one["type"] != "DisruptionTarget"]
    reason = {"reason": "EvictionByEvictionAPI", "message": "Eviction API: evicting"}
    evicted = {"type": "DisruptionTarget", "status": "True", "lastProbeTime": None, "lastTransitionTime": now}
    status["conditions"] = [*others, {**evicted, **reason}]


def _take_disruption(rest: RestStorage, namespace: str, name: str, labels: Json, *, dry_run: bool) -> None:
    budgets = rest.catalogue.get("policy", "v1", "poddisruptionbudgets")
    assert budgets is not None
    found = [entry.decode() for entry in rest.collection(budgets).entries(f"{namespace}/")]
    covering = [one for one in found if match_label_selector(one.get("spec", {}).get("selector"), labels)]
    if len(covering) > 1:
        text = (
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        )
        raise ApiError(500, "InternalError", text)
    for budget in covering:
        _check_budget(budget["metadata"], budget.get("status") or {})
        if not dry_run:
            rest.change(
                budgets, namespace, budget["metadata"]["name"], lambda one: _disrupt(one, name, rest.now())
            )


def _check_budget(metadata: Json, status: Json) -> None:
    name = metadata["name"]
    if status.get("observedGeneration", 0) < metadata.get("generation", 0):
        text = f"The disruption budget {name} is still being processed by the server."
        raise ApiError.disruption_budget(text, retry_after_seconds=10)
    if status.get("disruptionsAllowed", 0) <= 0:
        needs, has = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
        raise ApiError.disruption_budget(
            f"The disruption budget {name} needs {needs} healthy pods and has {has} currently"
        )


def _disrupt(budget: Json, pod: str, now: str) -> None:
    status = budget.setdefault("status", {})
    status["disruptionsAllowed"] -= 1
    status.setdefault("disruptedPods", {})[pod] = now
    if not status["disruptionsAllowed"]:
        others = [one for one in status.get("conditions", ()) if one["type"] != "DisruptionAllowed"]
        spent = {"type": "DisruptionAllowed", "status": "False", "reason": "InsufficientPods", "message": ""}
        generation = budget["metadata"].get("generation", 0)
        status["conditions"] = [
            *others,
            {**spent, "observedGeneration": generation, "lastTransitionTime": now},
        ]


def scale(
    rest: RestStorage, request: ReceivedRequest, resource: ServedResource, namespace: str, name: str
) -> CompleteAnswer:
    """Read or write the number of replicas a controller's object asks for.

    Raises: ApiError when the object is not there or was changed in between.
    """
    entry = rest.read(resource, namespace, name)
    current = _scale_of(entry.decode())
    if request.method in ("GET", "HEAD"):
        return json_response(current)
    wanted = _wanted_scale(request, current)
    version = (wanted.get("metadata") or {}).get("resourceVersion")
    if version and version != current["metadata"]["resourceVersion"]:
        raise ApiError.conflict(resource.plural, resource.group, name, MODIFIED_TEXT)
    document = entry.decode()
    document.setdefault("spec", {})["replicas"] = (wanted.get("spec") or {}).get("replicas", 0)
    updated = rest.update(resource, entry, document, dry_run=request.dry_run)
    return json_response(_scale_of(updated.decode()))


def _wanted_scale(request: ReceivedRequest, current: Json) -> Json:
    if request.method == "PUT":
        return content.read_document(request, "Scale")
    if request.method != "PATCH":
        raise ApiError.method_not_allowed()
    if content.media_type(request) == "application/json-patch+json":
        return json_patch(current, decode(request.body))
    patched: Any = merge_patch(current, decode(request.body))
    return dict(patched)


def _scale_of(document: Json) -> Json:
    spec, metadata = document.get("spec", {}), document["metadata"]
    selector = (spec.get("selector") or {}).get("matchLabels", {})
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {field: metadata[field] for field in kept if field in metadata},
        "spec": {"replicas": spec.get("replicas", 0)},
        "status": {
            "replicas": document.get("status", {}).get("replicas", 0),
            "selector": ",".join(f"{key}={value}" for key, value in selector.items()),
        },
    }
