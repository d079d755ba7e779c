"""How the command fails: one line on standard error, exit code 2, no traceback."""

import sys
from typing import NoReturn

import click

EXIT_FAILED = 1
EXIT_BAD_INPUT = 2


def fail(message: object) -> NoReturn:
    """Say what is wrong and exit."""
    click.echo(f"Error: {' '.join(str(message).split())}", err=True)
    sys.exit(EXIT_BAD_INPUT)
