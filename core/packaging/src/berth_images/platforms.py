"""The platforms that images are built for, and their names in each ecosystem."""

import platform

import msgspec

from berth_images.errors import ImageError


class Platform(msgspec.Struct, frozen=True):
    """One platform; `debian` and `machine` are its architecture as Debian and as wheels spell it."""

    architecture: str
    debian: str
    machine: str
    loader: str
    variant: str = ""

    @property
    def name(self) -> str:
        """The platform as `docker build --platform` takes it."""
        return f"linux/{self.architecture}"

    @property
    def libraries(self) -> str:
        """The folder of its shared libraries below the root."""
        return f"usr/lib/{self.machine}-linux-gnu"


PLATFORMS = (
    Platform("amd64", "amd64", "x86_64", "usr/lib64/ld-linux-x86-64.so.2"),
    Platform("arm64", "arm64", "aarch64", "usr/lib/ld-linux-aarch64.so.1", "v8"),
)


def by_name(name: str) -> Platform:
    """Return the platform of this name.

    Raises: ImageError.
    """
    for each in PLATFORMS:
        if name in (each.name, each.architecture):
            return each
    raise ImageError(f"--platform {name}: use one of {', '.join(each.name for each in PLATFORMS)}")


def of_this_machine() -> Platform:
    """Return the platform whose programs this machine runs.

    Raises: ImageError.
    """
    for each in PLATFORMS:
        if (platform.system(), platform.machine()) == ("Linux", each.machine):
            return each
    raise ImageError(
        f"images are built on Linux, amd64 or arm64, not on {platform.system()}, {platform.machine()}"
    )
