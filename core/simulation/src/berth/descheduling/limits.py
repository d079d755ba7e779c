"""How many evictions the policy's own limits still allow."""

from collections import Counter
from collections.abc import Iterable, Iterator

from berth.config.descheduling.policy import Policy
from berth.objects.pods.pod import Pod


class Limits:
    """What the policy still allows, counted down while a plan grows."""

    def __init__(self, policy: Policy) -> None:
        self._most = {
            "maxNoOfPodsToEvictTotal": policy.most,
            "maxNoOfPodsToEvictPerNode": policy.max_per_node,
            "maxNoOfPodsToEvictPerNamespace": policy.max_per_namespace,
        }
        self._taken: Counter[tuple[str, str]] = Counter()

    def why_not(self, pods: Iterable[Pod]) -> str:
        """Why these pods cannot all be evicted; empty where they can."""
        wanted = Counter(key for pod in pods for key in self._counted_by(pod))
        for key, count in wanted.items():
            most = self._most[key[0]]
            if most is not None and self._taken[key] + count > most:
                return f"{key[0]} {most} is reached"
        return ""

    def take(self, pod: Pod) -> None:
        """Count the pod's eviction."""
        self._taken.update(self._counted_by(pod))

    def _counted_by(self, pod: Pod) -> Iterator[tuple[str, str]]:
        """The limits, and what each counts the pod by."""
        return zip(self._most, ("", pod.node_name, pod.namespace), strict=True)
