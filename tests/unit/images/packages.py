"""Debian packages made by a test."""

import hashlib
import io
import tarfile

from berth_images.debian import Package


def deb(name, members):
    """A package of TarInfo members with their content."""
    control = [(tarfile.TarInfo("./control"), f"Package: {name}\nVersion: 1\n".encode())]
    parts = (
        ("debian-binary", b"2.0\n"),
        ("control.tar.gz", _tar(control)),
        ("data.tar.xz", _tar(members, "xz")),
    )
    return b"!<arch>\n" + b"".join(_member(part, content) for part, content in parts)


def file(name, content=b"content", mode=0o644):
    """A regular file of a package."""
    member = tarfile.TarInfo(name)
    member.mode = mode
    return member, content


def link(name, target):
    """A symbolic link of a package."""
    member = tarfile.TarInfo(name)
    member.type, member.linkname = tarfile.SYMTYPE, target
    return member, b""


def locked(name, content, path="pool/x.deb"):
    """The lock's entry of a package."""
    digest = hashlib.sha256(content).hexdigest()
    return Package(name, "1", name, "debian", path, len(content), digest)


def _tar(members, compression="gz"):
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode=f"w:{compression}") as archive:
        for member, content in members:
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return made.getvalue()


def _member(name, content):
    header = f"{name:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(content):<10}`\n".encode()
    return header + content + b"\n" * (len(content) % 2)
