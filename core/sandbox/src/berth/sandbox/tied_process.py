"""Become a command that the kernel ends when the process that started it does, even where that one is killed.

    python tied_process.py STARTER-PID COMMAND...

Linux has a way to ask for that (prctl, PR_SET_PDEATHSIG); on other systems the command runs without it.
Nothing of Berth is imported here, so that this costs little beside the command.
"""

import ctypes
import os
import signal
import sys

_SET_PARENT_DEATH_SIGNAL = 1
_CANNOT_EXECUTE = 126


def main() -> None:
    """Run the command of the arguments in place of this program."""
    starter, *command = sys.argv[1:]
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != int(starter):
        return  # it was gone before it could be asked for
    try:
        os.execv(command[0], command)  # noqa: S606 - the caller's own command, without a shell
    except OSError as error:
        sys.stderr.write(f"cannot start {command[0]}: {error.strerror}\n")
        raise SystemExit(_CANNOT_EXECUTE) from None


if __name__ == "__main__":
    main()
