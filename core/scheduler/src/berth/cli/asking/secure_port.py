"""Asking a running scheduler over its secure port, for the verbs that do."""

import json
import ssl
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from http import HTTPStatus
from http.client import HTTPException, HTTPResponse
from typing import Any, TypeVar, cast
from urllib.error import HTTPError, URLError

import click
import msgspec

from berth.cli.failing import fail

TIMEOUT_SECONDS = 60.0
LOCAL = "https://127.0.0.1:10259"
ANONYMOUS = "system:anonymous"

F = TypeVar("F", bound=Callable[..., Any])


class Server(msgspec.Struct, frozen=True):
    """A scheduler's secure port, and who asks."""

    url: str
    token: str = ""
    authority: str = ""
    """The file of the certificates to trust; those of the system if there is none."""
    insecure: bool = False
    remedy: str = "name the scheduler's secure port with --server"
    """What to do where nothing answers at the URL."""

    @contextmanager
    def stream(self, path: str, method: str, patience: float | None, **query: Any) -> Iterator[HTTPResponse]:
        """The body that comes in answer, as it comes; each piece of it within so many seconds.

        Ends the program with the scheduler's own text where there is none.
        """
        with self._explained(), self._open(path, method, None, patience, **query) as response:
            yield response

    def ask(self, path: str, method: str = "GET", body: bytes | None = None, **query: Any) -> Any:
        """The JSON that comes back; ends the program with the scheduler's own text where there is none."""
        with self._explained(), self._open(path, method, body, TIMEOUT_SECONDS, **query) as response:
            return json.load(response)

    def find(self, path: str, **query: Any) -> Any:
        """As `ask`, but where there is no such object. Raises: NotFoundError."""
        with self._explained(), _found(), self._open(path, "GET", None, TIMEOUT_SECONDS, **query) as response:
            return json.load(response)

    def _open(
        self, path: str, method: str, body: bytes | None, patience: float | None, **query: Any
    ) -> HTTPResponse:
        asked = urllib.parse.urlencode(query, doseq=True)
        url = f"{self.url}{path}?{asked}" if asked else f"{self.url}{path}"
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        request = urllib.request.Request(url, body, headers, method=method)  # noqa: S310 - the user's own URL
        response: HTTPResponse = urllib.request.urlopen(request, timeout=patience, context=self.tls())  # noqa: S310 - as above
        return response

    def tls(self) -> ssl.SSLContext:
        """How its certificate is verified; ends the program where the authority's file cannot be read."""
        if self.insecure:
            return ssl._create_unverified_context()  # noqa: S323, SLF001 - asked for by flag
        try:
            return ssl.create_default_context(cafile=self.authority or None)
        except OSError as error:
            fail(f"--certificate-authority {self.authority}: {error.strerror or error}")

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """End the program with what went wrong."""
        try:
            yield
        except HTTPError as error:
            fail(_message(error))
        except (URLError, HTTPException, OSError, ValueError) as error:
            reason = getattr(error, "reason", error)
            remedy = (
                "name the file that its certificate is verified by with --certificate-authority"
                if isinstance(reason, ssl.SSLCertVerificationError)
                else self.remedy
            )
            if isinstance(reason, ConnectionError):
                reason = reason.strerror or reason
            fail(f"{self.url}: {reason}: {remedy}")


@contextmanager
def _found() -> Iterator[None]:
    """Have a 404 with a Status raised as the API client raises it."""
    from berth.client.wire import error_from_event  # noqa: PLC0415 (quick start of the other verbs)

    try:
        yield
    except HTTPError as error:
        if error.code != HTTPStatus.NOT_FOUND:
            raise
        raise error_from_event(error.read()) from error


def _message(error: HTTPError) -> str:
    try:
        message = str(json.load(error).get("message") or error)
    except ValueError:
        return str(error)
    # Whom a scheduler does not know has sent no token: a client certificate is for API servers.
    remedy = ": say who asks with --token, as in --token $(kubectl create token NAME)"
    return f"{message}{remedy}" if ANONYMOUS in message else message


def asks_a_server(command: F) -> F:
    """The options that say which scheduler is asked, and as whom; BERTH_* variables do so, too.

    The command gets them as one argument, `server`; its URL is "" where none is named.
    """

    @wraps(command)
    def asked(*, server: str, token: str, authority: str, insecure: bool, **others: Any) -> Any:
        return command(server=Server(server, token, authority, insecure), **others)

    for option in (
        click.option(
            "--insecure-skip-tls-verify",
            "insecure",
            is_flag=True,
            envvar="BERTH_INSECURE_SKIP_TLS_VERIFY",
            help="Take any certificate, such as the one the scheduler makes for itself.",
        ),
        click.option(
            "--certificate-authority",
            "authority",
            default="",
            envvar="BERTH_CERTIFICATE_AUTHORITY",
            help="A file with the certificates to trust; an operator publishes them in the ConfigMap "
            "berth-NAME-ca.",
        ),
        click.option(
            "--token", default="", envvar="BERTH_TOKEN", help="A bearer token that may see the path."
        ),
        click.option(
            "--server",
            default="",
            envvar="BERTH_SERVER",
            help="One scheduler's secure port, such as https://127.0.0.1:10259, in place of the cluster.",
        ),
    ):
        option(asked)
    return cast("F", asked)
