"""The kinds of objects that the plugin follows."""

from collections.abc import Sequence

from berth_queues.budgets import BUDGETS
from berth_queues.device_claims import CLAIMS, CLASSES, TEMPLATES
from berth_queues.elastic_quotas import ELASTIC_QUOTAS
from berth_queues.groups import BETA_POD_GROUPS, COSCHEDULING_GROUPS, POD_GROUPS
from berth_queues.koordinator import KOORDINATOR_QUOTAS
from berth_queues.queue_objects import NAMESPACES, QUEUES
from berth_sdk import WatchedResource

OPTIONAL = {
    "Queue": QUEUES,
    "ElasticQuota": ELASTIC_QUOTAS,
    "KoordinatorQuota": KOORDINATOR_QUOTAS,
    "PodGroup": POD_GROUPS,
    "PodGroup/v1beta1": BETA_POD_GROUPS,
    "CoschedulingPodGroup": COSCHEDULING_GROUPS,
    "ResourceClaim": CLAIMS,
    "ResourceClaimTemplate": TEMPLATES,
    "DeviceClass": CLASSES,
}
"""By the word of `--kinds`."""
USUAL = ("Queue", "ElasticQuota")


def kinds(words: Sequence[str]) -> tuple[WatchedResource, ...]:
    """Return the kinds that these words name, the usual ones for none, and what is always watched."""
    return (*(OPTIONAL[word] for word in words or USUAL), NAMESPACES, BUDGETS)
