"""OCI image layouts: written so that equal contents have equal digests, and unpacked again.

Source: github.com/opencontainers/image-spec, image-layout.md, manifest.md, image-index.md, config.md (v1.1).
"""

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from berth_images.errors import ImageError
from berth_images.platforms import Platform
from berth_images.tree import EPOCH, Tree

Json = dict[str, Any]

INDEX = "application/vnd.oci.image.index.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
CREATED = datetime.fromtimestamp(EPOCH, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
_LEVEL = 6


class Layer(msgspec.Struct, frozen=True):
    """A layer's blob; `diff_id` is the digest of the archive before it was compressed. Units: size, bytes."""

    comment: str
    digest: str
    diff_id: str
    size: int
    unpacked_size: int


class Packed(msgspec.Struct, frozen=True):
    """A layer with its blob's content."""

    layer: Layer
    content: bytes


class Image(msgspec.Struct, frozen=True):
    """The image of one platform: its manifest's descriptor, and its layers."""

    platform: Platform
    descriptor: Json
    layers: tuple[Layer, ...]

    @property
    def size(self) -> int:
        """What a registry keeps of the layers. Units: bytes."""
        return sum(layer.size for layer in self.layers)

    @property
    def unpacked_size(self) -> int:
        """What a node keeps of the layers. Units: bytes."""
        return sum(layer.unpacked_size for layer in self.layers)


class ImageLayout:
    """A layout that is being written to an empty folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._blobs = folder / "blobs" / "sha256"
        self._blobs.mkdir(parents=True)
        (folder / "oci-layout").write_text('{"imageLayoutVersion":"1.0.0"}', encoding="utf-8")

    def add_layer(self, packed: Packed) -> Layer:
        """Write a layer's blob."""
        self._path(packed.layer.digest).write_bytes(packed.content)
        return packed.layer

    def add_image(self, platform: Platform, config: Json, layers: Sequence[Layer]) -> Image:
        """Write an image's configuration and manifest; `config` is what a container is started with."""
        about = {"architecture": platform.architecture, "os": "linux"}
        if platform.variant:
            about["variant"] = platform.variant
        configuration = {
            **about,
            "created": CREATED,
            "config": config,
            "rootfs": {"type": "layers", "diff_ids": [layer.diff_id for layer in layers]},
            "history": [{"created": CREATED, "comment": layer.comment} for layer in layers],
        }
        manifest = {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": self._add_json(configuration, CONFIG),
            "layers": [{"mediaType": LAYER, "digest": layer.digest, "size": layer.size} for layer in layers],
            "annotations": config["Labels"],
        }
        descriptor = {**self._add_json(manifest, MANIFEST), "platform": about}
        return Image(platform, descriptor, tuple(layers))

    def finish(self, images: Sequence[Image], name: str, tag: str, annotations: dict[str, str]) -> Json:
        """Write the index of the platforms and index.json, which leads to it; gives its descriptor."""
        index = {
            "schemaVersion": 2,
            "mediaType": INDEX,
            "manifests": [image.descriptor for image in images],
            "annotations": annotations,
        }
        descriptor = self._add_json(index, INDEX)
        # What skopeo and podman select by, and the name under which containerd imports the image.
        names = {
            "org.opencontainers.image.ref.name": tag,
            "io.containerd.image.name": f"{qualified(name)}:{tag}",
        }
        top = {
            "schemaVersion": 2,
            "mediaType": INDEX,
            "manifests": [{**descriptor, "annotations": names}],
        }
        (self.folder / "index.json").write_bytes(_encoded(top))
        return descriptor

    def _add_json(self, value: Json, media_type: str) -> Json:
        content = _encoded(value)
        digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
        self._path(digest).write_bytes(content)
        return {"mediaType": media_type, "digest": digest, "size": len(content)}

    def _path(self, digest: str) -> Path:
        return self._blobs / digest.removeprefix("sha256:")


def pack(tree: Tree, comment: str) -> Packed:
    """Archive and compress a layer.

    The same tree gives the same diff_id everywhere, and the same digest where zlib is the same.
    """
    made = io.BytesIO()
    # No name and no time in gzip's header.
    with gzip.GzipFile(filename="", mode="wb", compresslevel=_LEVEL, fileobj=made, mtime=0) as compressed:
        archive = _Hashed(compressed)
        tree.write_archive(archive)  # type: ignore[arg-type]
    content = made.getvalue()
    digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
    return Packed(Layer(comment, digest, archive.digest, len(content), archive.size), content)


def qualified(name: str) -> str:
    """Return an image's name with its registry, as container engines complete it."""
    first, slash, _ = name.partition("/")
    if slash and ("." in first or ":" in first or first == "localhost"):
        return name
    return f"docker.io/{name}" if slash else f"docker.io/library/{name}"


def unpack(layout: Path, platform: Platform, folder: Path) -> Json:
    """Write the root file system of a layout's image to an empty folder; gives the image's configuration.

    Raises: ImageError where the layout is damaged or has no such platform.
    """
    manifest = _manifest(layout, platform)
    configuration: Json = json.loads(_blob(layout, manifest["config"]["digest"]))
    for layer, diff_id in zip(manifest["layers"], configuration["rootfs"]["diff_ids"], strict=True):
        content = gzip.decompress(_blob(layout, layer["digest"]))
        if f"sha256:{hashlib.sha256(content).hexdigest()}" != diff_id:
            raise ImageError(f"{layout}: the content of {layer['digest']} is not {diff_id}")
        _extract(layout, content, folder)
    return configuration


def _extract(layout: Path, content: bytes, folder: Path) -> None:
    try:
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            archive.extractall(folder, filter=_within)  # noqa: S202 (the filter keeps members below the folder)
    except tarfile.TarError as error:
        raise ImageError(f"{layout}: a layer that is not unpacked: {error}") from None


def _within(member: tarfile.TarInfo, folder: str) -> tarfile.TarInfo:
    """Keep a member below the folder, and its mode as it is: every user may write to /tmp."""
    return tarfile.tar_filter(member, folder).replace(mode=member.mode)


def _manifest(layout: Path, platform: Platform) -> Json:
    try:
        top = json.loads((layout / "index.json").read_bytes())
    except (OSError, ValueError) as error:
        raise ImageError(f"{layout}: no OCI image layout: {error}") from None
    entries = top.get("manifests", [])
    if len(entries) != 1:
        raise ImageError(f"{layout}: index.json has {len(entries)} images; a layout of berth-images has one")
    index = json.loads(_blob(layout, entries[0]["digest"]))
    for descriptor in index.get("manifests", []):
        # An attestation of another tool has no platform.
        if descriptor.get("platform", {}).get("architecture") == platform.architecture:
            manifest: Json = json.loads(_blob(layout, descriptor["digest"]))
            return manifest
    raise ImageError(f"{layout}: no image for {platform.name}")


def _blob(layout: Path, digest: str) -> bytes:
    algorithm, _, name = digest.partition(":")
    path = layout / "blobs" / algorithm / name
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ImageError(f"{path}: {error.strerror}") from None
    if algorithm != "sha256" or hashlib.sha256(content).hexdigest() != name:
        raise ImageError(f"{path}: the content has another digest")
    return content


def _encoded(value: Json) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


class _Hashed:
    """A compressed file that is written through, with the size and the digest of what was."""

    def __init__(self, target: gzip.GzipFile) -> None:
        self._target = target
        self._hash = hashlib.sha256()
        self.size = 0

    def write(self, content: bytes) -> int:
        self._hash.update(content)
        self.size += len(content)
        return self._target.write(content)

    def tell(self) -> int:
        return self.size

    @property
    def digest(self) -> str:
        return f"sha256:{self._hash.hexdigest()}"
