"""A pod's volumes as folders, and each container's root with its mounts.

Files of ConfigMaps and secrets are swapped as a kubelet swaps them: `..data` is a link to a folder of one
version, the files are links through it, so that a reader sees all of the old version or all of the new one.

Source: pkg/volume/{configmap,emptydir,projected,util} (v1.36).
"""

import base64
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from berth.sandbox.store import Json

SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
# Which kube-controller-manager puts into every namespace.
_ROOT_AUTHORITY = "kube-root-ca.crt"
ROOT_VARIABLE = "CONTAINER_SANDBOX_MOUNT_POINT"
Files = dict[str, bytes]


class MissingError(Exception):
    """Something that a volume is made of is not there yet; the text says what."""


class Sources:
    """Where volumes get their content: `read` gives an object of the pod's namespace, or None."""

    def __init__(self, read: Callable[[str, str], Json | None], account: Files) -> None:
        self._read = read
        self._account = account

    def files(self, volume: Json, pod: Json) -> Files | None:
        """Give a volume's files, None for one that starts empty.

        Raises: MissingError.
        """
        if "configMap" in volume:
            return self._object("configmaps", volume["configMap"], volume["configMap"].get("name", ""))
        if "secret" in volume:
            return self._object("secrets", volume["secret"], volume["secret"].get("secretName", ""))
        if "projected" in volume:
            found: Files = {}
            for source in volume["projected"].get("sources") or ():
                found |= self._projected(source, pod)
            return found
        if "downwardAPI" in volume:
            return _downward(volume["downwardAPI"], pod)
        return None

    def account(self) -> Files:
        """Give what every pod needs to know of the API: token, authority, namespace."""
        return self._account

    def _projected(self, source: Json, pod: Json) -> Files:
        if "serviceAccountToken" in source:
            return {source["serviceAccountToken"]["path"]: self._account["token"]}
        if "downwardAPI" in source:
            return _downward(source["downwardAPI"], pod)
        for field, plural in (("configMap", "configmaps"), ("secret", "secrets")):
            if field in source:
                if source[field].get("name") == _ROOT_AUTHORITY:
                    return {"ca.crt": self._account["ca.crt"]}
                return self._object(plural, source[field], source[field].get("name", ""))
        return {}

    def _object(self, plural: str, source: Json, name: str) -> Files:
        found = self._read(plural, name)
        if found is None:
            if source.get("optional"):
                return {}
            raise MissingError(f'{plural.removesuffix("s")} "{name}" not found')
        data: Files = {key: str(value).encode() for key, value in (found.get("data") or {}).items()}
        data |= {key: base64.b64decode(value) for key, value in (found.get("binaryData") or {}).items()}
        if plural == "secrets":
            data = {key: base64.b64decode(value) for key, value in (found.get("data") or {}).items()}
        items = source.get("items")
        if not items:
            return data
        missing = [item["key"] for item in items if item["key"] not in data]
        if missing and not source.get("optional"):
            kind = "secret" if plural == "secrets" else "config"
            raise MissingError(f"references non-existent {kind} key: {missing[0]}")
        return {item["path"]: data[item["key"]] for item in items if item["key"] in data}


def _downward(source: Json, pod: Json) -> Files:
    items = source.get("items") or ()
    return {item["path"]: field_of(pod, item["fieldRef"]["fieldPath"]).encode() for item in items}


def field_of(pod: Json, path: str) -> str:
    """Give a field of the pod, as fieldRef names it."""
    bracket = re.fullmatch(r"metadata\.(labels|annotations)\['([^']+)'\]", path)
    if bracket:
        return str((pod["metadata"].get(bracket[1]) or {}).get(bracket[2], ""))
    node: object = pod
    for part in path.split("."):
        node = node.get(part) if isinstance(node, dict) else None
    return "" if node is None else str(node)


class PodFolder:
    """The folder of one pod: volumes, roots of containers, logs."""

    def __init__(self, path: Path, pod: Json, sources: Sources) -> None:
        self.path = path
        self._pod = pod
        self._sources = sources
        self._versions = 0
        self._written: dict[str, Files] = {}

    def prepare(self) -> None:
        """Make volumes and roots.

        Raises: MissingError when a volume's content is not there.
        """
        (self.path / "logs").mkdir(parents=True, exist_ok=True)
        self.refresh()
        for container in self.containers():
            self._mount(container)

    def refresh(self) -> None:
        """Bring the files of volumes up to date.

        Raises: MissingError.
        """
        for volume in self._pod["spec"].get("volumes") or ():
            try:
                files = self._sources.files(volume, self._pod)
            except MissingError as error:
                text = f'MountVolume.SetUp failed for volume "{volume["name"]}" : {error}'
                raise MissingError(text) from None
            self._write(f"v-{volume['name']}", files)
        self._write("account", self._sources.account())

    def containers(self) -> list[Json]:
        """Give all containers of the pod, in the order in which they start."""
        spec = self._pod["spec"]
        return [*(spec.get("initContainers") or ()), *spec["containers"]]

    def root(self, container: Json) -> Path:
        """Give the folder that stands for a container's root."""
        return self.path / str(self.containers().index(container))

    def log(self, container: Json) -> Path:
        """Give the file that a container's output goes to."""
        return self.path / "logs" / f"{container['name']}.log"

    def translate(self, container: Json, text: str) -> str:
        """Put the container's root before every mount path in the text."""
        root = self.root(container)
        paths = "|".join(re.escape(path) for path in sorted(self._mounts(container), key=len, reverse=True))
        # In one pass, for the root itself may lie below a path that is mounted.
        return re.sub(rf"(?<![\w.\-/])(?:{paths})(?=[^\w.\-]|$)", lambda found: f"{root}{found[0]}", text)

    def remove(self) -> None:
        """Take everything away."""
        shutil.rmtree(self.path, ignore_errors=True)

    def _mounts(self, container: Json) -> Mapping[str, Path]:
        """Give the mount paths, and what is there."""
        found = {}
        for mount in container.get("volumeMounts") or ():
            path = self.path / f"v-{mount['name']}" / mount.get("subPath", "")
            found[mount["mountPath"].rstrip("/")] = path
        if self._pod["spec"].get("automountServiceAccountToken") is not False:
            found.setdefault(SERVICE_ACCOUNT, self.path / "account")
        return found

    def _mount(self, container: Json) -> None:
        root = self.root(container)
        root.mkdir(exist_ok=True)
        for place, target in self._mounts(container).items():
            link = root / place.lstrip("/")
            link.parent.mkdir(parents=True, exist_ok=True)
            if not link.is_symlink():
                link.symlink_to(target)

    def _write(self, name: str, files: Files | None) -> None:
        folder = self.path / name
        folder.mkdir(parents=True, exist_ok=True)
        if files is None or self._written.get(name) == files:
            return
        self._versions += 1
        version = folder / f"..{self._versions}"
        version.mkdir()
        for file, content in files.items():
            target = version / file
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(self._rewritten(name, content))
        swap = folder / "..data_tmp"
        swap.symlink_to(version.name)
        swap.rename(folder / "..data")
        self._link(folder, files, self._written.get(name) or {})
        self._written[name] = files

    def _link(self, folder: Path, files: Files, before: Files) -> None:
        tops = {file.split("/")[0] for file in files}
        for top in tops:
            if not (folder / top).is_symlink():
                (folder / top).symlink_to(Path("..data") / top)
        for gone in {file.split("/")[0] for file in before} - tops:
            (folder / gone).unlink()

    def _rewritten(self, volume: str, content: bytes) -> bytes:
        """Give a mounted file as its reader has to see it: with the reader's own root before mount paths."""
        readers = [one for one in self.containers() if volume[2:] in _names(one)]
        if len(readers) != 1:
            return content
        try:
            return self.translate(readers[0], content.decode()).encode()
        except UnicodeDecodeError:
            return content


def _names(container: Json) -> list[str]:
    return [mount["name"] for mount in container.get("volumeMounts") or ()]
