"""Objects of any kind, created and replaced from template files.

Source: test/integration/scheduler_perf/operations.go createAny, update.go updateAny (Kubernetes v1.36.2).
"""

import asyncio

from berth.client.errors import ClientError
from tests.scheduler_perf.errors import PerfError
from tests.scheduler_perf.requests import many
from tests.scheduler_perf.templates import ObjectTemplate

RETRY_SECONDS = 20.0


async def create_any(requests, operation):
    """Create an operation's objects, one after the other. Raises: PerfError."""
    template = ObjectTemplate(operation["templatePath"], operation["templateParams"])
    count = _count(operation)
    for index in range(count):
        document = template.document(index, count)
        try:
            async with asyncio.timeout(RETRY_SECONDS):
                await _create(requests, operation, document)
        except TimeoutError:
            raise PerfError(
                f"{operation.place}: {template.path}: not created within {RETRY_SECONDS:g} s"
            ) from None


async def _create(requests, operation, document):
    # The kind may come with a definition that was created right before.
    while True:
        try:
            resource = await placed(requests, operation, document)
            await requests.create(resource, operation["namespace"] or "", document)
        except ClientError:
            await asyncio.sleep(1.0)
        else:
            return


async def update_any(requests, operation):
    """Replace an operation's objects and their status, at its pace. Raises: PerfError; ClientError."""
    template, count = ObjectTemplate(operation["templatePath"]), _count(operation)
    rate, namespace = operation["updatePerSecond"] or 0, operation["namespace"] or ""
    subresource = "/".join(operation["subresources"] or ())
    resource = await placed(requests, operation, template.document(0, count)) if count else None

    async def update(index):
        document = template.document(index, count)
        await requests.replace(resource, namespace, document, subresource)
        await requests.replace(resource, namespace, document, "status")

    if rate:
        await paced(count, rate, update)
    else:
        await many(count, update, at_once=1)


async def paced(count, rate, act):
    """Run `act(index)` for each index, so many a second; it is slower where one takes longer."""
    loop = asyncio.get_running_loop()
    due = loop.time()
    for index in range(count):
        due = max(due + 1 / rate, loop.time())
        await asyncio.sleep(due - loop.time())
        await act(index)


async def placed(requests, operation, document):
    """The document's kind. Raises: PerfError where the operation's namespace does not fit it."""
    resource = await requests.kind(document)
    if resource.namespaced != bool(operation["namespace"]):
        remedy = "set namespace" if resource.namespaced else "leave namespace out"
        raise PerfError(f"{operation.place}: {document['kind']}: {remedy}")
    return resource


def _count(operation):
    return 1 if operation["count"] is None else operation["count"]
