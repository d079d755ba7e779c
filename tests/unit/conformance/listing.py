"""Listed candidates and the same as a bitmap, for plugins and hosts of tests.

A list is made the bitmap of the same nodes, and of each vector of the answer the listed entries are kept.
"""

import numpy as np

from berth_plugin_proto import scheduling_pb2

WIDTHS = {"uint8": "u1", "int32": "<i4", "int64": "<i8"}


def lists(request):
    """Whether the request lists its candidates."""
    return hasattr(request, "candidates") and request.candidates.HasField("indices")


def read(data, n):
    """The listed rows, of n in all. Raises: ValueError."""
    if len(data) % 4:
        raise ValueError(f"{len(data)} bytes of indices, which take four each")
    rows = np.frombuffer(data, "<u4").astype(np.int64)
    if rows.size and (np.diff(rows).min(initial=1) < 1 or rows[-1] >= n):
        raise ValueError(f"indices of {n} nodes that are not ascending, or not there")
    return rows


def written(rows):
    """The rows as a list on the wire."""
    return np.array(rows, "<u4").tobytes()


def by_bitmap(request, rows, n):
    """The same question about these rows by a bitmap."""
    asked = np.zeros(n, bool)
    asked[rows] = True
    bitmap = np.packbits(asked, bitorder="little").tobytes()
    changed = type(request)()
    changed.CopyFrom(request)
    changed.candidates.CopyFrom(scheduling_pb2.Candidates(bitmap=bitmap))
    return changed


def pick(response, rows):
    """The answer with these entries of its vectors."""
    for part in parts(response):
        if part.HasField("verdicts") and part.verdicts.WhichOneof("codes") == "each":
            part.verdicts.each = np.frombuffer(part.verdicts.each, "u1")[rows].tobytes()
    for part in scored_parts(response):
        form = part.scores.WhichOneof("values")
        if form in WIDTHS:
            setattr(
                part.scores, form, np.frombuffer(getattr(part.scores, form), WIDTHS[form])[rows].tobytes()
            )
    return response


def parts(response):
    """The answers of Filter in it."""
    return [each for each in (response, getattr(response, "filter", None)) if hasattr(each, "verdicts")]


def scored_parts(response):
    """The answers of Score in it."""
    if hasattr(response, "score"):
        return [response.score] if response.HasField("score") else []
    return [response] if hasattr(response, "scores") else []
