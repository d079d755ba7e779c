"""Clusters by chance on which two ways to the same answer are compared."""

import sys

import click


def compared(count, folder, differences):
    """Print what `differences` of a seed and a folder finds; exit with 1 unless that is nothing for all."""
    different = {seed: found for seed in range(count) if (found := differences(seed, folder))}
    for seed, found in different.items():
        click.echo(f"{seed}: {'; '.join(found)}")
    click.echo(f"{count} clusters, {len(different)} differ")
    if different:
        sys.exit(1)
