"""Which of Berth's out-of-tree plugins does what a plugin of kubernetes-sigs/scheduler-plugins does, and how.

A profile that names one of them is refused; its error says what to write instead.

Source: cmd/scheduler/main.go and apis/config/types.go (kubernetes-sigs/scheduler-plugins v0.35).
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple


class Counterpart(NamedTuple):
    """Berth's plugin, empty where there is none, and what has to be written besides its name."""

    plugin: str
    how: str = ""


ARGS: Final = "its args are the same, without apiVersion and kind"
_NONE: Final = Counterpart("")

COUNTERPARTS: Final[Mapping[str, Counterpart]] = MappingProxyType(
    {
        "Coscheduling": Counterpart(
            "coscheduling",
            f"{ARGS}; it orders no queue: leave queueSort to PrioritySort",
        ),
        "CapacityScheduling": Counterpart(
            "queues", "disable DefaultPreemption at postFilter; it takes none of the args"
        ),
        "NodeResourceTopologyMatch": Counterpart("numa-aware", ARGS),
        "TargetLoadPacking": Counterpart(
            "load-aware", "args {strategy: TargetLoadPacking, ...}; metricProvider names no load-watcher"
        ),
        "LoadVariationRiskBalancing": Counterpart(
            "load-aware",
            "args {strategy: LoadVariationRiskBalancing, ...}; metricProvider names no load-watcher",
        ),
        "NodeResourcesAllocatable": Counterpart(
            "NodeResourcesFit", "scoringStrategy LeastAllocated or MostAllocated comes closest; it is in-tree"
        ),
        "CrossNodePreemption": _NONE,
        "LowRiskOverCommitment": _NONE,
        "NetworkOverhead": _NONE,
        "Peaks": _NONE,
        "PodState": _NONE,
        "PreemptionToleration": _NONE,
        "QOSSort": _NONE,
        "SySched": _NONE,
        "TopologicalSort": _NONE,
    }
)
"""By the name that a profile of scheduler-plugins uses."""


def hint(name: str) -> str:
    """What to write instead of a plugin of scheduler-plugins; empty for other names."""
    found = COUNTERPARTS.get(name)
    if found is None:
        return ""
    if not found.plugin:
        return (
            f"{name} is of scheduler-plugins, and none of Berth's plugins does it: take it out, "
            "or list an out-of-tree plugin of that name, see --plugins"
        )
    if not found.plugin[0].islower():
        return f"{name} is of scheduler-plugins; write {found.plugin}: {found.how}"
    does = f"{name} is of scheduler-plugins; Berth's out-of-tree plugin {found.plugin} does it: run it"
    return f"{does}, list it in a PluginList (--plugins), write {found.plugin} for {name}; {found.how}"
