"""`berth demo`: the main job, what `make run` runs."""

import asyncio
import sys
from pathlib import Path

import click

from berth.cli.failing import fail


@click.command()
@click.option("--keep", is_flag=True, help="Stay up after the report, until SIGINT or SIGTERM.")
@click.option(
    "--openb",
    "dataset",
    type=click.Path(path_type=Path),
    help="A folder with openb's CSV files, or Kubernetes manifests, in place of the built-in table.",
)
@click.option("--pods", type=click.IntRange(1), help="Submit only the first so many pods.")
@click.option("--seed", default=0, show_default=True, help="The order of the pods.")
@click.option(
    "--folder",
    default=Path("run"),
    show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Where logs, traces and the kubeconfig go.",
)
@click.option(
    "--real",
    is_flag=True,
    help="With a real kube-apiserver and etcd, found as `berth sandbox up --real` does.",
)
@click.option("--timeout", default=600.0, show_default=True, help="Give up after so many seconds.")
def demo(
    *,
    keep: bool,
    dataset: Path | None,
    pods: int | None,
    seed: int,
    folder: Path,
    real: bool,
    timeout: float,
) -> None:
    """Schedule a production cluster's pods on this machine: real processes, HTTP and gRPC."""
    # Imported here so that the other verbs start quickly.
    from berth.client.errors import ClientError  # noqa: PLC0415 (see above)
    from berth.demo.dataset import DatasetError  # noqa: PLC0415 (see above)
    from berth.demo.errors import DemoError  # noqa: PLC0415 (see above)
    from berth.demo.main_job import RunOptions, run_main_job  # noqa: PLC0415 (see above)

    options = RunOptions(folder, dataset, seed, pods, timeout, keep, real)
    try:
        sound = asyncio.run(run_main_job(options, click.echo))
    except (DemoError, DatasetError, ClientError) as error:
        fail(error)
    sys.exit(0 if sound else 1)
