"""Broken answers to candidates that are listed."""

import numpy as np

from tests.unit.conformance.broken import Fault
from tests.unit.conformance.listing import by_bitmap, lists, pick, read, written


def asked_by_list(name, answer):
    """Calls of that name with a list, which `answer(server, request, proceed)` answers."""

    async def call(server, called, request, proceed):
        if called == name and lists(request):
            return await answer(server, request, proceed)
        return await proceed(request)

    return Fault(call)


async def all_entries(server, request, proceed):
    """Give an entry for each node of the generation."""
    n = len(server.mirror.nodes)
    return await proceed(by_bitmap(request, read(request.candidates.indices, n), n))


async def backwards(_server, request, proceed):
    """Give the last listed node's entry first."""
    count = len(request.candidates.indices) // 4
    return pick(await proceed(request), np.arange(count)[::-1])


def misread(dtype):
    """Read numbers of another form, and give the entries of what they say, as many as were listed."""

    async def answer(server, request, proceed):
        n, data = len(server.mirror.nodes), request.candidates.indices
        numbers = np.frombuffer(data, dtype).astype(np.int64)
        every = numbers[:: numbers.size * 4 // len(data)] if data else numbers
        return pick(await proceed(by_bitmap(request, np.arange(n), n)), every.clip(0, n - 1))

    return answer


async def nothing_is_all(_server, request, proceed):
    """Take an empty list for none."""
    if not request.candidates.indices:
        request.ClearField("candidates")
    return await proceed(request)


def takes(*changes):
    """Take a list that is to be refused, as these changes of it have it."""

    async def answer(server, request, proceed):
        for change in changes:
            data = change(request.candidates.indices, len(server.mirror.nodes))
            request.candidates.indices = data
        return await proceed(request)

    return answer


def cut(data, _n):
    return data[: len(data) // 4 * 4]


def rows(change):
    def changed(data, n):
        return data if len(data) % 4 else written(change(np.frombuffer(data, "<u4").astype(np.int64), n))

    return changed


TAKEN = {
    "indices of 5 bytes": cut,
    "indices that are not ascending": rows(lambda listed, _n: np.sort(listed)),
    "an index that is listed twice": rows(lambda listed, _n: listed[np.diff(listed, prepend=-1) != 0]),
    "an index that is the node count": rows(lambda listed, n: listed[listed != n]),
    "an index of 32 bits": rows(lambda listed, _n: listed[listed < 2**31]),
}
WRONG_ENTRIES = {
    "one for each node": all_entries,
    "in another order": backwards,
    "big-endian indices": misread(">u4"),
    "signed bytes": misread("i1"),
    "low bytes": misread("u1"),
}
CALLS = {"filter": "Filter", "score": "Score", "filter-score": "FilterScore"}
FAULTS = {
    f"{subject}/{claim}": asked_by_list(name, answer)
    for subject, name in CALLS.items()
    for claim, answer in {
        "listed-candidates": all_entries,
        "nothing-listed": nothing_is_all,
        "wrong-indices": takes(*TAKEN.values()),
    }.items()
}
