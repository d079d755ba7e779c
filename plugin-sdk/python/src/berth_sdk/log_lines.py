"""A plugin's log lines: the message and its pairs are shown as klog shows them."""

import json
import logging
import re

_FORM = re.compile(r"([^%]*?)((?: \w+=%(?:s|\.\df))+)")


class LogFormatter(logging.Formatter):
    """Shows the message `unbound pod=%s` of the pod a/b as `"unbound" pod="a/b"`; other forms as they are."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        """The line, without a traceback."""
        form = _FORM.fullmatch(record.msg) if isinstance(record.msg, str) else None
        if form is not None and isinstance(record.args, tuple):
            record.message = json.dumps(form[1]) + form[2] % tuple(map(_shown, record.args))
        return super().formatMessage(record)


def _shown(value: object) -> object:
    return value if isinstance(value, int | float) else json.dumps(str(value), ensure_ascii=False)
