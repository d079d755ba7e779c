"""What the span of an extender's call says by OpenTelemetry's conventions.

Source: OpenTelemetry semantic conventions 1.44, HTTP client spans; written out as those of plugins are.
"""

from functools import lru_cache
from urllib.parse import urlsplit, urlunsplit

from berth.out_of_tree.extender.errors import ReplyError, StatusError
from berth.out_of_tree.transport.call_attributes import ERROR_TYPE, SERVER_ADDRESS, SERVER_PORT, Attributes

HTTP_REQUEST_METHOD = "http.request.method"
HTTP_RESPONSE_STATUS_CODE = "http.response.status_code"
URL_FULL = "url.full"

OK = 200
_PORTS = {"http": 80, "https": 443}


@lru_cache(maxsize=1024)
def http_request(url: str) -> Attributes:
    """Where a request goes, without the user and password that its URL may have."""
    parts = urlsplit(url)
    return {
        HTTP_REQUEST_METHOD: "POST",
        URL_FULL: urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2])),
        SERVER_ADDRESS: parts.hostname or "",
        SERVER_PORT: parts.port or _PORTS.get(parts.scheme, 0),
    }


def http_outcome(error: BaseException | None) -> Attributes:
    """How a request ended: the status of the answer, and what kind of failure it was."""
    if error is None:
        return {HTTP_RESPONSE_STATUS_CODE: OK}
    if isinstance(error, StatusError):
        return {HTTP_RESPONSE_STATUS_CODE: error.status, ERROR_TYPE: str(error.status)}
    if isinstance(error, ReplyError):
        return {HTTP_RESPONSE_STATUS_CODE: OK, ERROR_TYPE: type(error).__name__}
    return {ERROR_TYPE: type(error.__cause__ or error).__name__}
