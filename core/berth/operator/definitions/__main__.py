"""Write the definitions into a folder: `python -m berth.operator.definitions FOLDER`."""

import sys
from pathlib import Path

from berth.operator.definitions import plugin_definition, scheduler_definition
from berth.operator.definitions.text import to_yaml


def write(folder: Path) -> None:
    """Write a file for each definition."""
    for definition in (scheduler_definition(), plugin_definition()):
        name = f"{definition['spec']['names']['plural']}.yaml"
        (folder / name).write_text(to_yaml(definition), encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
