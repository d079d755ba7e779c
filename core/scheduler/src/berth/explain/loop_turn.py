"""The scheduling loop's turn as those take it who explain."""

from contextlib import AbstractAsyncContextManager, AbstractContextManager
from types import TracebackType
from typing import Protocol


class LoopTurn(AbstractAsyncContextManager[object], Protocol):
    """Held while it is entered: nothing is scheduled, and the loop's objects stay as they are."""

    async def __aenter__(self) -> object:
        """Wait for it."""

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        """Give it back."""

    def interruptible(self) -> AbstractContextManager[None]:
        """Within this context pods that wait are scheduled whenever the holder breathes.

        The loop's objects change then: only for work on a snapshot of one's own, by plugins of this process.
        """

    async def breathe(self) -> None:
        """Let everything else have its turn, and pods that wait theirs where that is allowed."""
