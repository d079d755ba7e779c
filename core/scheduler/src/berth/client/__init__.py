"""Floor 5: the API client: transport, credentials, reflectors, writes, leases, events.

How the scheduler process uses it:

    endpoint = load_endpoint(kubeconfig=path, master=url)        # ConfigurationError: exit code 2
    clock = SystemClock()
    transport = Transport(endpoint, limiter=TokenBucket(qps, burst, clock.monotonic))
    events = EventRecorder(Api(Transport(endpoint, max_connections=4)))
    elector = LeaderElector(Api(Transport(endpoint, max_connections=1)), LeaseSettings(), new_identity())
    pods = PodWrites(transport, may_write=WriteGuard(elector.is_fresh))
    mirror = Reflector(Transport(endpoint), WatchSource(PODS, field_selector=UNFINISHED), decode_pod, handler)

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(mirror.run())
        tasks.create_task(events.run())
        await mirror.wait_synced(60)
        await elector.acquire()
        tasks.create_task(elector.hold())                        # LeaseLostError: exit code 1
        pods.bind(namespace, name, uid, node, answered=took)     # took(outcome) is called once, with
                                                                 # Bound: done; the watch will confirm it
                                                                 # Conflict, NotFound, Rejected: requeue
                                                                 # Ambiguous: assume it, pods.get() shows

Mirrors, leases, events and bindings have a transport each: connections are handed out in the order in
which they are asked for, and neither a renewal nor a new list should queue behind ten thousand bindings.
Where to read on: errors (what to do about each), transport and connections (the wire), watching (reading),
pods, events and leases (writing), authentication (the rare path).
"""

from berth.client.api import Api
from berth.client.authentication.credentials import load_endpoint
from berth.client.endpoint import Endpoint, endpoint_of
from berth.client.events import EventRecorder, Reference
from berth.client.leases import LeaderElector, LeaseSettings, new_identity
from berth.client.pods import Ambiguous, BindOutcome, Bound, Conflict, NotFound, PodWrites, Rejected
from berth.client.resources import Resource
from berth.client.transport import Transport
from berth.client.watching.reflector import EventHandler, Reflector
from berth.client.watching.watch import WatchSource
from berth.framework.clock import Clock, SystemClock

__all__ = [
    "Ambiguous",
    "Api",
    "BindOutcome",
    "Bound",
    "Clock",
    "Conflict",
    "Endpoint",
    "EventHandler",
    "EventRecorder",
    "LeaderElector",
    "LeaseSettings",
    "NotFound",
    "PodWrites",
    "Reference",
    "Reflector",
    "Rejected",
    "Resource",
    "SystemClock",
    "Transport",
    "WatchSource",
    "endpoint_of",
    "load_endpoint",
    "new_identity",
]
