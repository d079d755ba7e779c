"""The simulated scheduler from a Scheduler and its SchedulerPlugins, rendered as by the operator.

    documents --defaulted, checked--> as an API server has them --operator--> configuration, plugins, gates

Called by: plugin_settings.
"""

import copy
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from berth.demo.dataset import DatasetError
from berth.demo.dataset.documents import parse_documents
from berth.demo.dataset.field_checks import check_object
from berth.demo.dataset.manifests import taken_apart
from berth.operator.definitions import plugin_definition, scheduler_definition
from berth.operator.errors import MissingPluginError, PlanError
from berth.operator.kinds import GROUP, VERSION, key_of
from berth.operator.rendering.configuration import configuration
from berth.operator.rendering.names import lease
from berth.sandbox.custom_resources.crd import CustomStrategy
from berth.sandbox.structural_schemas.structural_schema import prune, set_defaults
from berth.simulation.errors import InputError

Document = dict[str, Any]
SCHEDULER, PLUGIN = "Scheduler", "SchedulerPlugin"
_AS_NEW: Final = {"resourceVersion": "0"}
"""The rules of a definition are asked about what is about to be created."""


class RenderedScheduler(msgspec.Struct, frozen=True):
    """The configuration of a Scheduler's pod, and where each of its plugins runs in the cluster."""

    where: str
    configuration: bytes
    plugins: bytes
    feature_gates: str
    runs: Mapping[str, str]
    """By the plugin's name: the field that says where, and its value."""


def read_scheduler_objects(data: bytes, file: str) -> RenderedScheduler | None:
    """The scheduler of a file's contents, None where the file has no Scheduler. Raises: InputError."""
    is_json = Path(file).suffix == ".json" or data.lstrip()[:1] == b"{"
    documents = []
    try:
        for place, document in parse_documents(file, data, is_json=is_json):
            for where, prefix, each in taken_apart(document, place, ""):
                if str(each.get("apiVersion")).partition("/")[0] == GROUP:
                    check_object(each, where, prefix)
                    documents.append(each)
    except DatasetError as error:
        raise InputError(str(error)) from None
    return rendered(documents, file)


def rendered(documents: Iterable[Document], file: str) -> RenderedScheduler | None:
    """The scheduler among these documents, None where there is none. Raises: InputError."""
    ours = [each for each in documents if each["kind"] in (SCHEDULER, PLUGIN) and _is_ours(each, file)]
    schedulers = [each for each in ours if each["kind"] == SCHEDULER]
    if not schedulers:
        return None
    if len(schedulers) > 1:
        names = ", ".join(str(key_of(_head(each))) for each in schedulers)
        raise InputError(f"{file}: {len(schedulers)} Schedulers ({names}); give --config a file with one")
    scheduler = _completed(schedulers[0], scheduler_definition(), file)
    plugins = [_completed(each, plugin_definition(), file) for each in ours if each["kind"] == PLUGIN]
    found = {
        each["metadata"]["name"]: each
        for each in plugins
        if each["metadata"]["namespace"] == scheduler["metadata"]["namespace"]
    }
    return _rendered(scheduler, found, f"{file}: {SCHEDULER} {key_of(scheduler)}")


def _rendered(scheduler: Document, plugins: Mapping[str, Document], where: str) -> RenderedScheduler:
    try:
        made = configuration(scheduler, plugins, lease(scheduler))
    except MissingPluginError as error:
        raise InputError(f"{where}: spec.plugins: {error}") from None
    except PlanError as error:
        raise InputError(f"{where}: {'; '.join(str(error).splitlines())}") from None
    runs = {each["metadata"]["name"]: _place_of(each["spec"]) for each in made.plugins}
    texts = made.scheduler_yaml.encode(), made.plugins_yaml.encode()
    return RenderedScheduler(where, *texts, ",".join(made.feature_gates), runs)


def _place_of(spec: Document) -> str:
    field = "image" if "image" in spec else "address"
    return f"spec.{field}: {spec[field]}"


def _is_ours(document: Document, file: str) -> bool:
    """Whether it is an object of the operator's group. Raises: InputError where it could not be admitted."""
    version, name = document["apiVersion"], document["metadata"].get("name")
    if version.partition("/")[0] != GROUP:
        return False
    if not name:
        raise InputError(f"{file}: {document['kind']}: metadata.name: missing; give the object a name")
    if version != VERSION:
        raise InputError(f"{file}: {document['kind']} {name}: apiVersion: found {version!r}; give {VERSION}")
    return True


def _head(document: Document) -> Document:
    """The object without its spec: apiVersion, kind, name and namespace."""
    metadata = document["metadata"]
    named = {"name": metadata["name"], "namespace": metadata.get("namespace") or "default"}
    return {"apiVersion": VERSION, "kind": document["kind"], "metadata": named}


def _completed(document: Document, definition: Document, file: str) -> Document:
    """The object with its defaults, as an API server would admit it. Raises: InputError."""
    structural = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    head = _head(document)
    rest = {"spec": copy.deepcopy(document.get("spec"))}
    unknown: list[str] = []
    prune(rest, structural, "", unknown)
    set_defaults(rest, structural)
    new = {**head, "metadata": {**head["metadata"], **_AS_NEW}, **rest}
    problems = [f"{field}: unknown field" for field in unknown]
    problems += map(str, CustomStrategy(structural).validate(new))
    if problems:
        raise InputError(f"{file}: {document['kind']} {key_of(head)}: {problems[0]}; correct the field")
    return {**head, **rest}
