"""How an explanation is shown: as a page, or as data."""

import json
from collections.abc import Callable, Iterable
from typing import Any

import click
import yaml

Json = dict[str, Any]

overview_output = click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json", "yaml"]),
    default="text",
    show_default=True,
    help="A page, or the whole answer as data.",
)
"""The option of the commands that have one form of page."""


def show(answer: Json, output: str, page_of: Callable[[Json], Iterable[str]]) -> None:
    """The answer in the form that was asked for."""
    match output:
        case "json":
            click.echo(json.dumps(answer, indent=2))
        case "yaml":
            click.echo(yaml.safe_dump(answer, sort_keys=False).rstrip())
        case _:
            click.echo("\n".join(page_of(answer)))
