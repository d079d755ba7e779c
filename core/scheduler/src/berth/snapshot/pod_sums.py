"""What pods hold together, as one column of a table of sums."""

from collections.abc import Iterable, Mapping, Sequence

from berth.snapshot.pod_info import PodInfo

BEFORE_REQUESTS = 3
"""The count, and cpu and memory with defaults."""


def places_of(resource_names: Sequence[str]) -> Mapping[str, int]:
    """Where each resource's requests stand in a column."""
    return {name: place for place, name in enumerate(resource_names, BEFORE_REQUESTS)}


def added_up(pods: Iterable[PodInfo], places: Mapping[str, int]) -> list[int]:
    """The column of these pods: their count, cpu and memory with defaults, and their requests by place."""
    sums = [0] * (BEFORE_REQUESTS + len(places))
    for info in pods:
        sums[0] += 1
        sums[1] += info.non_zero[0]
        sums[2] += info.non_zero[1]
        for name, amount in info.requests.items():
            # What has no column is either offered nowhere, or added up from the table's pods.
            if name in places:
                sums[places[name]] += amount
    return sums
