"""What goes on beside the measured pods: objects that come and go, and pods that are deleted.

Source: test/integration/scheduler_perf/executor.go runChurnOp, runDeletePodsOp (Kubernetes v1.36.2).
"""

import asyncio
from itertools import count

from berth.client.errors import ClientError, NotFoundError
from berth.client.resources import PODS
from tests.scheduler_perf.changing import paced
from tests.scheduler_perf.templates import ObjectTemplate

INTERVAL_MILLISECONDS = 500


async def churn(requests, operation, namespace):
    """Create objects at intervals; when recreating, delete those of the turn before last and so on."""
    templates = [ObjectTemplate(path) for path in operation["templatePaths"]]
    kinds = [await requests.kind(template.document()) for template in templates]
    seconds = (operation["intervalMilliseconds"] or INTERVAL_MILLISECONDS) / 1e3
    recreate, number = operation["mode"] == "recreate", operation["number"] or 0
    names = [[""] * number for _ in templates]
    turns = range(number) if number and not recreate else count()
    for turn in turns:
        await asyncio.sleep(seconds)
        for which, (template, kind) in enumerate(zip(templates, kinds, strict=True)):
            where = namespace if kind.namespaced else ""
            if recreate and (name := names[which][turn % number]):
                await _gone(requests, kind, where, name)
                names[which][turn % number] = ""
                continue
            created = await _created(requests, kind, where, template)
            if recreate:
                names[which][turn % number] = created


async def _created(requests, kind, namespace, template):
    document = template.document()
    if kind == PODS:
        document = await requests.prioritized(document)
    try:
        return (await requests.create(kind, namespace, document))["metadata"]["name"]
    except ClientError:
        # As upstream: an object that is refused is left out, such as a name that is still there.
        return ""


async def _gone(requests, kind, namespace, name):
    try:
        await requests.delete(kind, namespace, name)
    except NotFoundError:
        # Preempted in between.
        return


async def delete_pods(requests, watch, operation):
    """Delete the pods of a namespace that have the operation's labels, at its pace or all at once."""
    namespace, labels = operation["namespace"] or "", operation["labelSelector"]
    if not (rate := operation["deletePodsPerSecond"]):
        await requests.delete_all(PODS, namespace, labels)
        return
    names = [pod.metadata.name for pod in watch.selected(namespace, labels)]
    await paced(len(names), rate, lambda index: _gone(requests, PODS, namespace, names[index]))
