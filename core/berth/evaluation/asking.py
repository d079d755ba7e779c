"""Asking several plugins at once: those in other processes work while this one does."""

from collections.abc import Generator, Iterable


class _LetOthersRun:
    """Awaited, it gives the loop two turns, in which what other processes are asked is sent."""

    def __await__(self) -> Generator[None, None, None]:
        yield
        yield


LET_OTHERS_RUN = _LetOthersRun()


def drop_unread(answers: Iterable[object]) -> None:
    """Cancel these answers: they are not going to be read."""
    for unread in answers:
        stop = getattr(unread, "cancel", None) or getattr(unread, "close", None)
        if stop is not None:
            stop()
