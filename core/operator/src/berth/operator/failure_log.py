"""The log of failed looks at Schedulers: a line when that begins or its cause changes, and one at the end."""

import logging

from berth.client.errors import ClientError, lacks_rights
from berth.operator.kinds import SchedulerKey

log = logging.getLogger(__name__)


class FailureLog:
    """What was logged last about each Scheduler whose look failed."""

    def __init__(self) -> None:
        self._logged: dict[SchedulerKey, str] = {}
        self._refused: set[SchedulerKey] = set()

    def failed(self, key: SchedulerKey, error: Exception) -> None:
        """Log a cause that was not logged yet, with a traceback where it is none of the API server's.

        Rights that are lacking are the operator's and no Scheduler's: that is one line for all of them.
        """
        if lacks_rights(error):
            if not self._refused:
                log.warning(
                    "rights are gone, as while Berth is uninstalled; else apply it again err=%s", error
                )
            self._refused.add(key)
            return
        text = f"{type(error).__name__}: {error}"
        if self._logged.get(key) != text:
            self._logged[key] = text
            traced = None if isinstance(error, ClientError) else error
            log.warning("reconcile failed, tried again scheduler=%s err=%s", key, error, exc_info=traced)

    def went_well(self, key: SchedulerKey) -> None:
        """Log that a failure is over."""
        if self._logged.pop(key, None) is not None or key in self._refused:
            self._refused.discard(key)
            log.info("reconciled again scheduler=%s", key)
