"""The `berth` command: one group, a module for each verb."""

import click


@click.group()
def main() -> None:
    """Berth schedules Kubernetes pods, and is extended without being recompiled."""
