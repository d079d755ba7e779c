"""Who needs room: a pod, or a pod group together with those of its pods that were tried."""

from collections.abc import Sequence

import msgspec

from berth.framework.mirrors.group_trees import AnyGroup, key_of, kind_of
from berth.objects.pods.pod import Pod


class Preemptor(msgspec.Struct, frozen=True):
    """The object that events and conditions name, and the pods that are to be tried again."""

    obj: Pod | AnyGroup
    pods: Sequence[Pod]

    @property
    def uid(self) -> str:
        """The object's UID."""
        return self.obj.uid

    @property
    def key(self) -> str:
        """The object's namespace and name."""
        return self.obj.key

    @property
    def kind(self) -> str:
        """What users read that it is."""
        return "pod" if isinstance(self.obj, Pod) else kind_of(key_of(self.obj))

    @property
    def scheduler_name(self) -> str:
        """The profile in whose name it preempts."""
        return self.pods[0].spec.scheduler_name

    @property
    def priority(self) -> int:
        """Its priority, 0 where it has none."""
        return self.obj.spec.priority or 0


def alone(pod: Pod) -> Preemptor:
    """A pod that preempts on its own account."""
    return Preemptor(pod, (pod,))
