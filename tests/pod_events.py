"""What becomes of pods, as a watcher sees it."""

import json
from contextlib import suppress

from berth.client.errors import RetryError
from berth.client.resources import PODS
from berth.client.watching.watch import WatchSource, pages, watch_lines

WATCH_SECONDS = 300


async def current_pods(transport, resource=PODS):
    """The pods there are, or objects of another kind, and the version of the list."""
    listed = [page async for page in pages(transport, WatchSource(resource), page_size=0)]
    items = [json.loads(bytes(item)) for page in listed for item in page.items or ()]
    return items, listed[-1].metadata.resource_version


async def pod_events(transport, resource_version, resource=PODS):
    """(type, pod) of every event since, without end; of another kind, if one is named.

    A real API server ends the watch of a client that falls behind: it goes on from where it was.
    """
    while True:
        with suppress(RetryError):
            async for lines in watch_lines(transport, WatchSource(resource), resource_version, WATCH_SECONDS):
                for event in map(json.loads, lines):
                    resource_version = event["object"]["metadata"]["resourceVersion"]
                    if event["type"] != "BOOKMARK":
                        yield event["type"], event["object"]
