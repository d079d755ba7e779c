"""Requests to the servers behind APIServices, sent as the front proxy.

Source: staging/src/k8s.io/kube-aggregator/pkg/apiserver/handler_proxy.go (v1.36).
"""

import asyncio
import ssl
from base64 import b64decode
from collections.abc import Mapping
from itertools import count
from typing import Final

from berth.sandbox.aggregation.endpoints import FAILED_CHECK, EndpointError, addresses
from berth.sandbox.aggregation.front_proxy import PREFIX, FrontProxy, user_headers
from berth.sandbox.attributes import SandboxUser
from berth.sandbox.request import CompleteAnswer, ReceivedRequest
from berth.sandbox.rest import RestStorage
from berth.sandbox.store import Json

_ANSWER_SECONDS: Final = 30.0
_DEFAULT_PORT: Final = 443
# Of the connection to here, or proof of who its client is, which is this server's to have.
_KEPT_HERE: Final = frozenset(
    {
        *("authorization", "connection", "content-length", "expect", "host", "keep-alive", "te", "trailer"),
        *("proxy-authorization", "transfer-encoding", "upgrade"),
    }
)


class Backends:
    """Sends requests on, to the pods of a Service in turn."""

    def __init__(self, rest: RestStorage, proxy: FrontProxy) -> None:
        self._rest = rest
        self._proxy = proxy
        self._turns = count()

    async def send(self, spec: Json, request: ReceivedRequest, user: SandboxUser) -> CompleteAnswer:
        """Give the answer of the server that an APIService's spec names.

        Raises: UnreachableError.
        """
        # Imported here: it takes 0.3 s of CPU, and most sandboxes have no APIService.
        import aiohttp  # noqa: PLC0415 (see above)

        service = spec["service"]
        namespace, name = service["namespace"], service["name"]
        ends = addresses(self._rest, namespace, name, service.get("port") or _DEFAULT_PORT)
        end = ends[next(self._turns) % len(ends)]
        try:
            async with (
                asyncio.timeout(_ANSWER_SECONDS),
                aiohttp.ClientSession(auto_decompress=False) as session,
                session.request(
                    request.method,
                    f"https://{end.host}:{end.port}{request.path}",
                    params=request.query,
                    headers=_headers(request.headers, user),
                    data=request.body or None,
                    ssl=self._trusting(spec),
                    server_hostname=f"{name}.{namespace}.svc",
                    allow_redirects=False,
                ) as answer,
            ):
                content = answer.headers.get("Content-Type", "application/json")
                return CompleteAnswer(answer.status, [await answer.read()], content)
        except Exception as error:
            problem = str(error) or type(error).__name__
            raise EndpointError(FAILED_CHECK, f"error trying to reach service: {problem}") from error

    def _trusting(self, spec: Json) -> ssl.SSLContext:
        bundle = b64decode(spec.get("caBundle") or "").decode("ascii")
        context = ssl.create_default_context(cadata=bundle or None)
        if spec.get("insecureSkipTLSVerify"):
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        self._proxy.show_in(context)
        return context


def _headers(given: Mapping[str, str], user: SandboxUser) -> list[tuple[str, str]]:
    kept = ((name, value) for name, value in given.items() if name not in _KEPT_HERE)
    return [*((name, value) for name, value in kept if not name.startswith(PREFIX)), *user_headers(user)]
