"""Write the definitions into kustomize's folder: `python -m tests.manifests FOLDER`.

The component of a descheduler without the operator is written, too: as the operator renders one.
"""

from pathlib import Path

import click

from berth.config.dump import yaml_text
from berth.operator.definitions import plugin_definition, scheduler_definition
from berth.operator.definitions.text import HEADER, to_yaml
from berth.operator.rendering.descheduler import LABELS, ROLE_GROUP, standing
from berth.operator.rendering.settings import SchedulerDefaults
from tests.manifests.merge_keys import merge_keys

IMAGE = "berth/descheduler"
"""kustomize/images has its version."""


def write(folder: Path) -> list[Path]:
    """Write the files; gives their paths below the folder."""
    written = [Path("config/openapi.json")]
    (folder / "config").mkdir(parents=True, exist_ok=True)
    (folder / written[0]).write_text(merge_keys(), encoding="utf-8")
    (folder / "crds").mkdir(parents=True, exist_ok=True)
    for definition in (scheduler_definition(), plugin_definition()):
        written.append(Path("crds", f"{definition['spec']['names']['plural']}.yaml"))
        (folder / written[-1]).write_text(to_yaml(definition), encoding="utf-8")
    written.append(Path("components/descheduler/cron_job.yaml"))
    (folder / written[-1]).parent.mkdir(parents=True, exist_ok=True)
    (folder / written[-1]).write_text(_descheduler(), encoding="utf-8")
    return written


def _descheduler() -> str:
    metadata = {
        "name": "berth-descheduler",
        "namespace": "berth-system",
        "labels": {"app.kubernetes.io/part-of": "berth"},
    }
    binding = {name: metadata[name] for name in ("name", "labels")}
    role = SchedulerDefaults("").role_of(ROLE_GROUP)
    made = standing(metadata, binding, {"image": IMAGE}, role=role, labels=LABELS, placed={})
    return HEADER + "---\n".join(map(yaml_text, made))


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
def main(folder: Path) -> None:
    """Write the definitions into FOLDER, such as `kustomize`."""
    write(folder)


if __name__ == "__main__":
    main()
