"""Write the definitions into kustomize's folder: `python -m berth.operator.definitions FOLDER`."""

from pathlib import Path

import click

from berth.operator.definitions import plugin_definition, scheduler_definition
from berth.operator.definitions.merge_keys import merge_keys
from berth.operator.definitions.text import to_yaml


def write(folder: Path) -> list[Path]:
    """Write a file for each definition, and one with the merge keys; gives their paths below the folder."""
    written = [Path("config/openapi.json")]
    (folder / "config").mkdir(parents=True, exist_ok=True)
    (folder / written[0]).write_text(merge_keys(), encoding="utf-8")
    (folder / "crds").mkdir(parents=True, exist_ok=True)
    for definition in (scheduler_definition(), plugin_definition()):
        written.append(Path("crds", f"{definition['spec']['names']['plural']}.yaml"))
        (folder / written[-1]).write_text(to_yaml(definition), encoding="utf-8")
    return written


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
def main(folder: Path) -> None:
    """Write the definitions into FOLDER, such as `kustomize`."""
    write(folder)


if __name__ == "__main__":
    main()
