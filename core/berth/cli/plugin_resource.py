"""A change of a SchedulerPlugin, made with the user's own rights: it reaches all replicas, and it lasts."""

import asyncio
import json
from typing import Any

from berth.cli.failing import fail


def set_shadow(namespace: str, name: str, *, shadow: bool, kubeconfig: str) -> list[str]:
    """Put a SchedulerPlugin into shadow, or have it take part; gives the Schedulers that run it.

    Ends the program with the API server's words where that fails.
    """
    return asyncio.run(_patched(namespace, name, {"spec": {"shadow": shadow}}, kubeconfig))


async def _patched(namespace: str, name: str, change: dict[str, Any], kubeconfig: str) -> list[str]:
    # Imported here so that the other verbs start quickly.
    from berth.client.api import Api  # noqa: PLC0415 (see above)
    from berth.client.credentials import load_endpoint  # noqa: PLC0415 (see above)
    from berth.client.errors import ClientError  # noqa: PLC0415 (see above)
    from berth.client.transport import Transport  # noqa: PLC0415 (see above)
    from berth.operator.kinds import PLUGINS  # noqa: PLC0415 (see above)

    try:
        endpoint = await asyncio.to_thread(load_endpoint, kubeconfig=kubeconfig)
        transport = Transport(endpoint, max_connections=1)
        try:
            answer = await Api(transport).patch(PLUGINS, namespace, name, json.dumps(change).encode())
        finally:
            await transport.aclose()
    except ClientError as error:
        fail(str(error))
    names: list[str] = (json.loads(answer).get("status") or {}).get("schedulers") or []
    return names
