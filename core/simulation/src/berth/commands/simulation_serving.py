"""`berth simulate serve`: which nodes would make pods fit, asked by autoscalers over gRPC."""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import click

from berth.cli.asking.cluster import KubeconfigCluster, asks_a_cluster
from berth.cli.failing import fail
from berth.commands.simulated_scheduler import (
    CONFIG,
    FEATURE_GATES,
    RELEASE,
    read_scheduler,
)

if TYPE_CHECKING:
    from berth.simulation.running.options import SimulationOptions
    from berth.simulation_service.forks import Base
    from berth.simulation_service.server import Tls

GRACE_SECONDS = 5.0


@click.command()
@click.argument("inputs", nargs=-1, metavar="[INPUT...]")
@click.option("--listen", required=True, metavar="ADDRESS", help="unix:///PATH, or HOST:PORT.")
@asks_a_cluster
@CONFIG
@FEATURE_GATES
@RELEASE
@click.option("--seed", default=0, show_default=True, help="Of the choice between equal nodes.")
@click.option("--tls-cert", default="", metavar="FILE", help="The certificate that clients are shown.")
@click.option("--tls-key", default="", metavar="FILE", help="Its key.")
@click.option("--client-ca", default="", metavar="FILE", help="Whose certificates clients have to show.")
def serve(
    *,
    inputs: tuple[str, ...],
    listen: str,
    cluster: KubeconfigCluster,
    config_file: str,
    feature_gates: str,
    release: str,
    seed: int,
    tls_cert: str,
    tls_key: str,
    client_ca: str,
) -> None:
    """Answer autoscalers over gRPC: which nodes would make pods fit.

    Serves berth.simulation.v1 and the cluster-autoscaler's expander (docs/autoscalers.md) until SIGTERM. The
    cluster is followed and never written to; with INPUT, as for `run`, it is what the files say.

    Exits with 0, or with 2 where an input, the configuration or the address is wrong.
    """
    from berth.simulation.errors import SimulationError  # noqa: PLC0415 (quick start of the other verbs)
    from berth.simulation.plugins.plugin_settings import check_in_process  # noqa: PLC0415 (quick start)
    from berth.simulation.running.options import SimulationOptions  # noqa: PLC0415 (quick start)
    from berth.simulation_service.errors import AddressError  # noqa: PLC0415 (quick start)
    from berth.simulation_service.server import Tls  # noqa: PLC0415 (quick start)

    if bool(tls_cert) != bool(tls_key) or (client_ca and not tls_cert):
        fail("--tls-cert and --tls-key belong together, and --client-ca to them: give what is lacking")
    tls = Tls(tls_cert, tls_key, client_ca) if tls_cert else None
    settings = read_scheduler(config_file, feature_gates, release=release)
    options = SimulationOptions(settings.loaded, seed=seed, plugins=settings.plugins)
    try:
        check_in_process(options.loaded, options.plugins)
        with cluster.asked():
            asyncio.run(_serve(listen, tls, options, inputs, cluster))
    except (AddressError, SimulationError) as error:
        fail(error)


async def _serve(
    listen: str,
    tls: "Tls | None",
    options: "SimulationOptions",
    inputs: tuple[str, ...],
    cluster: KubeconfigCluster,
) -> None:
    from berth.framework.clock import SYSTEM_CLOCK  # noqa: PLC0415 (quick start)
    from berth.simulation_service.expander import Expander  # noqa: PLC0415 (quick start)
    from berth.simulation_service.forks import Forks  # noqa: PLC0415 (quick start)
    from berth.simulation_service.limits import ServiceLimits  # noqa: PLC0415 (quick start)
    from berth.simulation_service.queries import Queries  # noqa: PLC0415 (quick start)
    from berth.simulation_service.server import serve as served  # noqa: PLC0415 (quick start)
    from berth.simulation_service.service import SimulationService  # noqa: PLC0415 (quick start)

    stop, limits = asyncio.Event(), ServiceLimits()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with _of_files(inputs, options.seed) if inputs else _followed(cluster) as base:
        queries, forks = Queries(limits, SYSTEM_CLOCK), Forks(limits, SYSTEM_CLOCK)
        service = SimulationService(options, base, forks, queries, limits)
        expander = Expander(options, base, queries, limits)
        server, address = await served(listen, tls, service, expander, limits)
        click.echo(f"serving berth.simulation.v1 and grpcplugin.Expander at {address}")
        await stop.wait()
        queries.close()
        await server.stop(GRACE_SECONDS)


@asynccontextmanager
async def _of_files(inputs: tuple[str, ...], seed: int) -> "AsyncIterator[Base]":
    from berth.simulation.reading.inputs import read_cluster  # noqa: PLC0415 (quick start)

    cluster = read_cluster(inputs, seed=seed)
    yield lambda: cluster


@asynccontextmanager
async def _followed(cluster: KubeconfigCluster) -> "AsyncIterator[Base]":
    from berth.client.transport import Transport  # noqa: PLC0415 (quick start)
    from berth.simulation_service.live_cluster import LiveCluster  # noqa: PLC0415 (quick start)

    transport = Transport(await asyncio.to_thread(cluster.endpoint))
    live = LiveCluster(transport)
    try:
        async with asyncio.TaskGroup() as tasks:
            following = tasks.create_task(live.follow())
            yield live.now
            following.cancel()
    except BaseExceptionGroup as group:
        # What the body of a task group raises comes out wrapped; alone, it is the error that was raised.
        if len(group.exceptions) > 1:
            raise
        raise group.exceptions[0] from None
    finally:
        await transport.aclose()
