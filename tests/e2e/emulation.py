"""Programs of another platform, run by QEMU: nothing of the machine is changed, and no root is needed.

Each user namespace has a binfmt_misc of its own, since Linux 6.7. It names QEMU as the interpreter of such
programs, and of those that they start.
"""

import shutil

from berth_images.platforms import of_this_machine

FOLDER = "/proc/sys/fs/binfmt_misc"
REGISTER = f"""\
mount -t binfmt_misc none {FOLDER}
printf %s "$RULE" > {FOLDER}/register
"""
"""For a shell in namespaces of its own; RULE is that of the platform."""
# The fields of an ELF header up to the machine: 64 bits, little-endian; an executable or a shared object.
_MAGIC = r"\x7fELF\x02\x01\x01" + r"\x00" * 9 + r"\x02\x00\x{machine:02x}\x00"
_MASK = r"\xff" * 7 + r"\x00" + r"\xff" * 8 + r"\xfe\xff\xff\xff"
_MACHINES = {"amd64": 0x3E, "arm64": 0xB7}


def rule(platform):
    """What binfmt_misc is given for a platform; empty for this machine's, and where there is no emulator.

    F: the kernel opens the emulator at once, because the image's root has none. P: programs keep their name.
    """
    program = None if platform == of_this_machine() else shutil.which(emulator(platform))
    magic = _MAGIC.format(machine=_MACHINES[platform.architecture])
    return f":{platform.machine}:M::{magic}:{_MASK}:{program}:PF" if program else ""


def emulator(platform):
    """The program, from Debian's qemu-user-static."""
    return f"qemu-{platform.machine}-static"
