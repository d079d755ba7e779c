"""Drive a plugin without a scheduler: `async with running(plugin) as host: await host.filter(pod)`."""

from berth_sdk.testing.builders import make_node, make_pod
from berth_sdk.testing.cluster import Cluster
from berth_sdk.testing.host import Host, Refused, running

__all__ = ["Cluster", "Host", "Refused", "make_node", "make_pod", "running"]
