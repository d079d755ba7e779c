"""What readers of recordings say of a file's format, its end, and what it lacks."""

from enum import StrEnum
from pathlib import Path


class EndReason(StrEnum):
    """Why a recording ended: as a whole, for want of room or time, or because it was stopped."""

    COMPLETE = "complete"
    SIZE = "size"
    BEHIND = "behind"
    STOPPED = "stopped"


_EARLY = {
    EndReason.SIZE: "the recording ended early: the file had the size that was allowed",
    EndReason.BEHIND: "the recording ended early: more came than could be written in time",
}


def ended_early(reason: str) -> str:
    """A warning for a recording that ended for that reason; empty where nothing is lacking."""
    return next((text for each, text in _EARLY.items() if each == reason), "")


def cut_off(path: Path) -> str:
    """A warning for a recording without its last entry."""
    return f"{path} is cut off: what is there was replayed"


def format_problem(path: Path, found: int, readable: range, version: str) -> str:
    """Why a recording of that format can't be read, and what to do; empty where it can.

    `version` is the Berth that wrote it.
    """
    if found in readable:
        return ""
    latest = readable[-1]
    known = f"formats up to {latest}" if len(readable) > 1 else f"format {latest}"
    remedy = " or newer" if found > latest else ", or record anew"
    return f"{path} has format {found}, and {known} can be read here: replay it with berth {version}{remedy}"
