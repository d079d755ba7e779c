"""`kubectl berth` and `kubectl_complete-berth`: what kubectl finds under these names.

The first is the same program, the second completes its words: it is given the words so far, the last one
unfinished, and prints what that may become, then a directive.

Source: kubectl/pkg/cmd/plugin_completion.go (Kubernetes v1.36); cobra's __complete protocol.
"""

import sys

import click
from click.shell_completion import ShellComplete

from berth.cli.main import main
from berth.cli.printing import printed

NO_FILES = ":4"
"""Cobra's directive that names of files are no completions."""


def kubectl_berth() -> None:
    """Run, and call ourselves as the user did."""
    main(prog_name="kubectl berth")


def kubectl_complete_berth() -> None:
    """Print the completions."""
    *words, unfinished = sys.argv[1:] or [""]
    with printed():
        for found in ShellComplete(main, {}, "kubectl berth", "").get_completions(words, unfinished):
            if found.type == "plain":
                click.echo(f"{found.value}\t{found.help}" if found.help else found.value)
        click.echo(NO_FILES)
