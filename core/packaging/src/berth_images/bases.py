"""The layers that images are built on: Debian packages, and what their scripts would have written.

Scripts of packages are not run. What images need of them is written here: users, name service switch, the
bundle of certificates, the name `python3`.
"""

from functools import cache
from importlib.resources import files

import msgspec

from berth_images.debian import Lock, Package, fetched, unpacked
from berth_images.errors import ImageError
from berth_images.platforms import Platform
from berth_images.tree import File, Folder, Symlink, Tree

USER = 65532
"""The user and the group that images run as."""
CERTIFICATES = "etc/ssl/certs/ca-certificates.crt"
_PASSWD = (
    "root:x:0:0:root:/root:/sbin/nologin\n"
    "nobody:x:65534:65534:nobody:/nonexistent:/sbin/nologin\n"
    f"nonroot:x:{USER}:{USER}:nonroot:/home/nonroot:/sbin/nologin\n"
)
_GROUP = f"root:x:0:\nnobody:x:65534:\nnonroot:x:{USER}:\n"
_SWITCH = "passwd: files\ngroup: files\nhosts: files dns\nservices: files\nprotocols: files\n"
_DOCUMENTS = "usr/share/doc/"


class LayerPackages(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A layer's name and the packages that it has."""

    name: str
    packages: list[str]


class LeftOut(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Patterns of names that no image has."""

    patterns: list[str]


class Bases(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What bases.toml says."""

    suite: str
    python: str
    layers: list[LayerPackages]
    without: dict[str, str]
    left_out: LeftOut

    def up_to(self, base: str) -> list[LayerPackages]:
        """Return a base's layers, the lowest first.

        Raises: ImageError where there is no base of this name.
        """
        names = [each.name for each in self.layers]
        if base not in names:
            raise ImageError(f"base {base!r}: use one of {', '.join(names)}")
        return self.layers[: names.index(base) + 1]


class BaseLayer(msgspec.Struct, frozen=True):
    """A layer's files and the packages that they come from."""

    name: str
    tree: Tree
    packages: tuple[Package, ...]


@cache
def bases() -> Bases:
    """Return the bases that this version has."""
    text = (files("berth_images") / "bases.toml").read_bytes()
    return msgspec.toml.decode(text, type=Bases)


@cache
def lock() -> Lock:
    """Return the packages that this version has locked."""
    text = (files("berth_images") / "debian.lock.json").read_bytes()
    return msgspec.json.decode(text, type=Lock)


def base_layers(base: str, platform: Platform) -> list[BaseLayer]:
    """Return a base's layers, the lowest first, without bytecode.

    Raises: ImageError.
    """
    return [_layer(each.name, tuple(each.packages), platform) for each in bases().up_to(base)]


@cache
def _layer(name: str, packages: tuple[str, ...], platform: Platform) -> BaseLayer:
    locked = {each.name: each for each in lock().packages[platform.debian]}
    chosen = tuple(locked[each] for each in packages)
    tree = Tree()
    for package in chosen:
        _add_package(tree, package)
    if name == "static":
        _add_system(tree)
    if name == "python":
        tree.add("usr/bin/python3", Symlink(f"python{bases().python}"))
    return BaseLayer(name, tree, chosen)


def _add_package(tree: Tree, package: Package) -> None:
    found, control = unpacked(fetched(package), tuple(bases().left_out.patterns))
    for name in found:
        # A licence asks that its text comes along; other documents stay behind.
        if not name.startswith(_DOCUMENTS) or name.endswith("/copyright") or isinstance(found[name], Symlink):
            tree.add(name, found[name])
    # Where scanners look for the packages of an image that has no dpkg.
    tree.add(f"var/lib/dpkg/status.d/{package.name}", File(control.encode()))


def _add_system(tree: Tree) -> None:
    tree.add("etc/passwd", File(_PASSWD.encode()))
    tree.add("etc/group", File(_GROUP.encode()))
    tree.add("etc/nsswitch.conf", File(_SWITCH.encode()))
    tree.add("etc/localtime", Symlink("/usr/share/zoneinfo/Etc/UTC"))
    tree.add("tmp", Folder(0o1777))
    tree.add("home/nonroot", Folder())
    authorities = sorted(name for name in tree if name.startswith("usr/share/ca-certificates/mozilla/"))
    bundle = b"".join(entry.read() for name in authorities if isinstance(entry := tree[name], File))
    tree.add(CERTIFICATES, File(bundle))
