"""Reads a cluster: snapshots, Kubernetes files, recorded days, SimKube traces, or openb's.

path --+--> snapshot, a line an object ------------------------------+
       +--> recording of a cluster, or SimKube trace, with times ----+
       +--> YAML or JSON of `kubectl get` or of a hand --> checked --+--> admitted --> typed, in order
       +--> `openb`, or a folder of its CSV files -------------------+
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import msgspec
import zstandard

from berth.config.reading.own_documents import API_GROUP
from berth.demo.dataset import DatasetError, open_dataset
from berth.demo.dataset.documents import Place, parse_documents
from berth.demo.dataset.field_checks import check_node, check_object, check_pod
from berth.demo.dataset.manifests import manifest_files, taken_apart
from berth.demo.dataset.openb_csv import PODS_FILE, read_times
from berth.objects.api_object import TypedObject
from berth.objects.decode import UndecodableObjectError, without_nulls
from berth.objects.node import Node
from berth.objects.pods.pod import Pod
from berth.simulation.errors import InputError
from berth.simulation.reading.admission import Admission, complete_node
from berth.simulation.reading.kinds import BY_NAME, KINDS, SCHEDULER_OBJECTS, PriorityClass, SimulatedKind
from berth.simulation.reading.packed_lines import (
    LONGEST_LINE_BYTES,
    NO_JSON,
    UNREADABLE,
    bounded_rest,
    unpacked,
)
from berth.simulation.reading.recorded_day import RecordedDay
from berth.simulation.reading.recorded_events import RecordedEvent, events_of
from berth.simulation.reading.revisions import Revision
from berth.simulation.reading.simkube import Trace, is_trace, template_pod
from berth.simulation.reading.snapshot_file import header_of, read_lines
from berth.simulation.reading.timeline import ARRIVAL, DURATION

OPENB: Final = "openb"
"""In place of a file: the cluster of the openb trace that comes with the package."""
MAX_BYTES: Final = 4 << 30
"""Of a Kubernetes file, unpacked."""
_LIKE_JSON: Final = re.compile(rb'\s*\{\s*["}]')
"""What YAML that is no JSON seldom begins with."""
FINISHED: Final = frozenset({"Succeeded", "Failed"})
FINISHED_POD: Final = "finished Pod"
STRAY_POD: Final = "Pod on a node that is not in the input"
"""Among what is left out."""

CORE_CHECKS: Final = {"Node": check_node, "Pod": check_pod}
Document = dict[str, Any]


class LocatedDocument(NamedTuple):
    """A document, and its location for messages.

    The one of a revision is a pod of its template, if it has one.
    """

    document: Document
    where: str
    revision: Revision | None = None


@dataclass(slots=True)
class ClusterInput:
    """The objects of a cluster by key, for each kind in the order of KINDS.

    `left_out` counts the objects of kinds that no in-tree plugin reads, pods that have finished, and those of
    nodes that are not there, which are kept.
    """

    objects: dict[type[TypedObject], dict[str, TypedObject]] = field(
        default_factory=lambda: {kind.type: {} for kind in KINDS}
    )
    left_out: Counter[str] = field(default_factory=Counter)
    others: list[Document] = field(default_factory=list)
    """Those objects, as they are written: sidecars may read them."""
    workloads: list[Revision] = field(default_factory=list)
    """The owners of a trace, whose pods are made while time passes."""

    def of(self, kind: type[TypedObject]) -> dict[str, Any]:
        """The objects of that kind, by key."""
        return self.objects[kind]

    def all(self) -> Iterator[tuple[SimulatedKind, TypedObject]]:
        """Every object with its kind; objects that others refer to come first."""
        for kind in KINDS:
            for obj in self.objects[kind.type].values():
                yield kind, obj

    def copy(self) -> "ClusterInput":
        """A copy of the cluster that can be changed independently."""
        objects = {kind: dict(held) for kind, held in self.objects.items()}
        return ClusterInput(objects, self.left_out.copy(), self.others, self.workloads)

    def running(self) -> "ClusterInput":
        """A copy of the cluster without its pending pods and without owners that create pods later."""
        made = self.copy()
        made.workloads = []
        made.objects[Pod] = {key: pod for key, pod in self.of(Pod).items() if pod.node_name}
        return made


def read_cluster(
    paths: Sequence[str | Path], *, seed: int = 0, seen: Callable[[Document], None] = lambda _: None
) -> ClusterInput:
    """Read everything; several paths make one cluster.

    `seed` orders the pods of the openb table. `seen` is shown each document as it is written.
    Raises: InputError.
    """
    reader = _Reader()
    try:
        for path in paths:
            before = reader.count
            for found in _documents(path, seed):
                if found.revision is None:
                    seen(found.document)
                reader.take(found)
            if reader.count == before:
                raise InputError(
                    f"{path}: no Kubernetes object in it; give a file that is whole and holds some"
                )
    except DatasetError as error:
        raise InputError(str(error)) from None
    cluster = reader.cluster()
    if not cluster.of(Node) and (traces := [path for path in paths if _is_trace_file(Path(path))]):
        raise InputError(f"{traces[0]}: a trace of SimKube has no nodes; give some as another INPUT")
    return cluster


def with_objects_of(cluster: ClusterInput, path: str) -> ClusterInput:
    """The cluster with a file's objects in place of all of their kinds, which are kinds of plugins.

    Raises: InputError.
    """
    given = read_cluster([path])
    if kind := next((kind.name for kind, _ in given.all()), ""):
        raise InputError(f"{path}: found a {kind}, which the scheduler itself reads; give it with --input")
    kinds = {(each["apiVersion"].partition("/")[0], each["kind"]) for each in given.others}
    kept = [
        each for each in cluster.others if (each["apiVersion"].partition("/")[0], each["kind"]) not in kinds
    ]
    made = cluster.copy()
    for _, name in kinds:
        made.left_out.pop(name, None)
    made.left_out += given.left_out
    made.others = kept + given.others
    return made


def _is_trace_file(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return is_trace(file.read(1))


def read_pods(path: str | Path, cluster: ClusterInput) -> list[Pod]:
    """The pods of a file, admitted as new ones to that cluster. Raises: InputError."""
    reader = _Reader(cluster.of(PriorityClass))
    try:
        for found in _documents(path, 0):
            found.document["metadata"].pop("uid", None)
            found.document.pop("status", None)
            (found.document.get("spec") or {}).pop("nodeName", None)
            reader.take(found)
    except DatasetError as error:
        raise InputError(str(error)) from None
    read = reader.cluster()
    pods: list[Pod] = list(read.of(Pod).values())
    if not pods:
        kinds = {kind.name for kind, _ in read.all()} | {*read.left_out}
        found_kinds = f" but {', '.join(sorted(kinds))[:200]}" if kinds else ""
        raise InputError(f"{path}: no Pod in it{found_kinds}; give the pod to be copied as a Pod of its own")
    return pods


def read_snapshot(data: bytes, name: str, *, max_bytes: int) -> ClusterInput:
    """The cluster of a snapshot file's contents, of at most so many bytes unpacked. Raises: InputError."""
    reader, stream = _Reader(), unpacked(BytesIO(data))
    try:
        if header_of(stream.readline(LONGEST_LINE_BYTES)) is None:
            raise InputError(f"{name}: found no snapshot; give the contents of a file of `berth snapshot`")
        for found in _of_snapshot(_within(read_lines(stream, name), max_bytes, name), name):
            reader.take(found)
        return reader.cluster()
    except (DatasetError, OSError, EOFError, RecursionError, zstandard.ZstdError) as error:
        raise InputError(f"{name}: {error}; take the snapshot anew") from None


def read_objects(documents: Iterable[bytes], name: str, cluster: ClusterInput | None = None) -> ClusterInput:
    """The objects of JSON documents, one each; new pods get what the cluster's priority classes say.

    Raises: InputError.
    """
    reader = _Reader({} if cluster is None else cluster.of(PriorityClass))
    try:
        for index, data in enumerate(documents):
            reader.take(_object(data, f"{name}[{index}]"))
        return reader.cluster()
    except DatasetError as error:
        raise InputError(str(error)) from None
    except RecursionError:
        raise InputError(f"{name}: an object is nested too deeply; leave the field out") from None


def _within(lines: Iterable[tuple[int, bytes]], most: int, name: str) -> Iterator[tuple[int, bytes]]:
    size = 0
    for number, line in lines:
        size += len(line)
        if size > most:
            raise InputError(f"{name}:{number}: more than {most} bytes unpacked; give a smaller cluster")
        yield number, line


def _object(data: bytes, name: str) -> LocatedDocument:
    try:
        document = msgspec.json.decode(data)
    except NO_JSON as error:
        raise InputError(f"{name}: no JSON ({error}); give an object as the API server writes it") from None
    if not isinstance(document, dict):
        raise InputError(f"{name}: no object; give one with apiVersion, kind and metadata")
    place = Place(name, 1)
    check_object(document, place, "")
    if document["apiVersion"] == "v1" and document["kind"] in CORE_CHECKS:
        CORE_CHECKS[document["kind"]](document, place, "")
    if (document["apiVersion"].rpartition("/")[0], document["kind"]) not in BY_NAME:
        raise InputError(
            f"{name}: kind: found {document['kind'][:60]!r}, which no decision reads; leave it out"
        )
    return LocatedDocument(document, f"{name}: {_named(document)}")


def typed(found: LocatedDocument, kind: SimulatedKind) -> TypedObject:
    """The typed object of a document. Raises: InputError."""
    try:
        obj: TypedObject = kind.decode(msgspec.json.encode(without_nulls(found.document)))
    except (UndecodableObjectError, ValueError) as error:
        what, _, field_path = str(error).partition(" - at `$")
        named = f": {field_path.strip('.`')}" if field_path else ""
        what = what.removeprefix(f"{kind.name}: ").removeprefix("PodObject: ")
        raise InputError(f"{found.where}{named}: {what}; correct the field") from None
    return obj


def _documents(path: str | Path, seed: int) -> Iterator[LocatedDocument]:
    given = Path(path)
    if str(path) == OPENB and not given.exists():
        yield from _of_dataset(None, OPENB, seed)
    elif given.is_dir() and any(given.glob("openb_*.csv")):
        yield from _of_dataset(given, str(path), seed)
    else:
        for file in manifest_files(given):
            yield from _of_file(file)


def _of_dataset(path: Path | None, name: str, seed: int) -> Iterator[LocatedDocument]:
    times = {} if path is None else read_times(path / PODS_FILE)
    first = min((came for came, _ in times.values() if came is not None), default=0)
    for document in open_dataset(path, seed=seed).load().in_creation_order():
        came, went = times.get(document["metadata"]["name"], (None, None))
        if came is not None:
            annotations = document["metadata"].setdefault("annotations", {})
            annotations[ARRIVAL] = str(came - first)
            if went is not None:
                annotations[DURATION] = str(max(0, went - came))
        yield LocatedDocument(document, f"{name}: {document['kind']} {document['metadata']['name']}")


def _of_file(path: Path) -> Iterator[LocatedDocument]:
    try:
        with path.open("rb") as opened:
            stream = unpacked(opened)
            first = stream.readline(MAX_BYTES + 1)
            if header_of(first) is not None:
                yield from _of_snapshot(read_lines(stream, str(path)), str(path))
                return
            if (events := events_of(path, stream, first)) is not None:
                yield from _of_recording(events, str(path))
                return
            data = first + bounded_rest(stream, MAX_BYTES - len(first))
            if is_trace(data):
                yield from _of_trace(data, str(path))
                return
    except UNREADABLE as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(f"{path}: {why}; give a file that can be read") from None
    if len(data) > MAX_BYTES:
        raise InputError(f"{path}: more than {MAX_BYTES} bytes; make a snapshot of the cluster instead")
    is_json = ".json" in path.suffixes or _LIKE_JSON.match(data) is not None
    yield from _checked(data, str(path), is_json=is_json and b"\n---" not in data)


def _of_snapshot(lines: Iterable[tuple[int, bytes]], file: str) -> Iterator[LocatedDocument]:
    for number, line in lines:
        try:
            document = msgspec.json.decode(line)
        except NO_JSON as error:
            raise InputError(f"{file}:{number}: no JSON ({error}); take the snapshot anew") from None
        place = Place(file, number)
        for _, _, each in taken_apart(document, place, ""):
            check_object(each, place, "")
            yield LocatedDocument(each, f"{file}:{number}: {_named(each)}")


def _of_recording(events: Iterable[RecordedEvent], file: str) -> Iterator[LocatedDocument]:
    for document in RecordedDay(events).documents():
        yield LocatedDocument(document, f"{file}: {_named(document)}")


def _of_trace(data: bytes, file: str) -> Iterator[LocatedDocument]:
    trace = Trace(data, file)
    for number, document in enumerate(trace.documents(), 1):
        place = Place(file, number)
        check_object(document, place, "")
        if document["kind"] == "Pod":
            check_pod(document, place, "")
        yield LocatedDocument(document, f"{file}: {_named(document)}")
    for number, revision in enumerate(trace.revisions, 1):
        document = template_pod(revision) or {}
        if document:
            check_pod(document, Place(file, number), f"{revision.owner}: spec.template.")
        yield LocatedDocument(document, f"{file}: {revision.owner}", revision)


def _checked(data: bytes, file: str, *, is_json: bool) -> Iterator[LocatedDocument]:
    for place, document in parse_documents(file, data, is_json=is_json):
        for where, prefix, each in taken_apart(document, place, ""):
            check_object(each, where, prefix)
            if each["apiVersion"] == "v1" and each["kind"] == "Node":
                check_node(each, where, prefix)
            if each["apiVersion"] == "v1" and each["kind"] == "Pod":
                each["metadata"].setdefault("namespace", "default")
                check_pod(each, where, prefix)
            inside = f" {prefix.rstrip('.')}" if prefix else ""
            yield LocatedDocument(each, f"{where.file}: document {where.document}{inside}: {_named(each)}")


def _named(document: Document) -> str:
    metadata = document["metadata"]
    namespace = metadata.get("namespace")
    name = metadata.get("name") or metadata.get("generateName", "")
    return f"{document['kind']} {namespace}/{name}" if namespace else f"{document['kind']} {name}"


def _from_api_server(document: Document) -> bool:
    """Whether an API server admitted this pod: it sets a UID and a scheduler name."""
    spec = document.get("spec")
    return (
        bool(document["metadata"].get("uid")) and isinstance(spec, dict) and bool(spec.get("schedulerName"))
    )


def _revision(found: LocatedDocument, admission: Admission) -> Revision:
    """The revision, with its pod defaulted as by an API server. Raises: InputError."""
    revision = found.revision
    assert revision is not None, "a revision was found"
    if revision.template is None:
        return revision
    found = found._replace(document=without_nulls(found.document))
    typed(found, BY_NAME["", "Pod"])
    admission.pod(found.document, found.where)
    pod = typed(found, BY_NAME["", "Pod"])
    assert isinstance(pod, Pod), "it is of that kind"
    return msgspec.structs.replace(revision, pod=pod)


class _Reader:
    """Sorts documents by kind; nothing is typed before all priority classes are known."""

    def __init__(self, classes: Mapping[str, PriorityClass] = MappingProxyType({})) -> None:
        self._found: dict[type[TypedObject], list[LocatedDocument]] = {kind.type: [] for kind in KINDS}
        self._cluster = ClusterInput()
        self._classes = classes
        self._revisions: list[LocatedDocument] = []
        self.count = 0

    def take(self, found: LocatedDocument) -> None:
        self.count += 1
        if found.revision is not None:
            self._revisions.append(found)
            return
        document = found.document
        group, _, version = document["apiVersion"].rpartition("/")
        kind = BY_NAME.get((group, document["kind"]))
        if kind is None:
            self._check_spelling(found, group)
            if group != API_GROUP or document["kind"] not in SCHEDULER_OBJECTS:
                self._cluster.left_out[document["kind"]] += 1
            self._cluster.others.append(document)
        elif version not in kind.versions:
            versions = (f"{group}/{each}" if group else each for each in kind.versions)
            remedy = f"give the object as {' or '.join(versions)}"
            raise InputError(f"{found.where}: apiVersion: found {document['apiVersion']!r}; {remedy}")
        else:
            self._found[kind.type].append(found)

    @staticmethod
    def _check_spelling(found: LocatedDocument, group: str) -> None:
        """Refuse an unknown kind that differs from one that decisions read in letter case alone."""
        kind = found.document["kind"]
        meant = next((name for of, name in BY_NAME if of == group and name.lower() == kind.lower()), None)
        if meant is not None:
            raise InputError(f"{found.where}: kind: found {kind[:60]!r}; write {meant}")

    def cluster(self) -> ClusterInput:
        """Type everything. Raises: InputError."""
        classes: dict[str, PriorityClass] = self._cluster.of(PriorityClass)
        for kind in KINDS:
            # Kinds come in order: the classes are complete when the first pod is admitted.
            admission = Admission({**self._classes, **classes})
            for found in self._found.pop(kind.type):
                self._add(found, kind, admission)
        self._cluster.workloads = [_revision(found, admission) for found in self._revisions]
        nodes, pods = self._cluster.of(Node), self._cluster.of(Pod).values()
        if stray := sum(bool(pod.node_name) and pod.node_name not in nodes for pod in pods):
            self._cluster.left_out[STRAY_POD] = stray
        return self._cluster

    def _add(self, found: LocatedDocument, kind: SimulatedKind, admission: Admission) -> None:
        unseen = kind.type is Pod and not _from_api_server(found.document)
        if unseen:
            # Defaulting relies on the types of fields.
            found = LocatedDocument(without_nulls(found.document), found.where)
            typed(found, kind)
        document, metadata = found.document, found.document["metadata"]
        if kind.resource.namespaced:
            metadata.setdefault("namespace", "default")
        if kind.type is Pod:
            status = document.get("status")
            if isinstance(status, dict) and status.get("phase") in FINISHED:
                self._cluster.left_out[FINISHED_POD] += 1
                return
            if unseen:
                admission.pod(document, found.where)
        elif kind.name == "Node":
            complete_node(document)
        held = self._cluster.of(kind.type)
        name = metadata.get("name") or f"{metadata['generateName']}{len(held)}"
        metadata["name"] = name
        # Without a UID from a server, the object's name serves as its UID.
        metadata.setdefault("uid", f"{metadata.get('namespace', '')}/{name}")
        obj = typed(found, kind)
        if obj.key in held:
            raise InputError(f"{found.where}: metadata.name: found a second time; name each object once")
        held[obj.key] = obj
