"""A page of documentation as something to run: its files, its commands, and what it says they print."""

import re
import shutil
import subprocess

FENCE = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.DOTALL | re.MULTILINE)
ANYTHING = "..."
MARK = "=== block"


def chosen(text, heading):
    """The page with this section of its level 3, and without the others of that level beside it."""
    parts = re.split(r"^(?=##+ )", text, flags=re.MULTILINE)
    return "".join(
        part for part in parts if not part.startswith("### ") or part.startswith(f"### {heading}\n")
    )


class Page:
    """A page in a folder of its own. A named block is a file, `sh` is run, `text` is what came out of it."""

    def __init__(self, text):
        self.files, self.commands, self.promised = {}, [], []
        for language, name, body in FENCE.findall(text):
            if name:
                self.files[name] = body
            elif language == "sh":
                self.commands.append(body)
                self.promised.append("")
            elif language == "text":
                self.promised[-1] = body

    def run(self, folder, environment, seconds):
        """Run everything; a dictionary from each block of commands to what it printed, in their order.

        The shell ends at the first command that fails; what it started is ended with it.
        """
        for name, body in self.files.items():
            (folder / name).write_text(body)
        script = "\n".join(f"echo '{MARK}'\n{block}" for block in self.commands)
        trap = "trap 'code=$?; kill $(jobs -p) 2> /dev/null || true; wait; exit $code' EXIT\n"
        done = subprocess.run(
            [shutil.which("bash"), "-eu", "-c", trap + script],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=seconds,
            text=True,
            check=False,
        )
        assert 0 == done.returncode, done.stdout + logs(folder)
        return done.stdout.split(f"{MARK}\n")[1:]


def logs(folder):
    """What the processes said, to find the reason."""
    return "".join(f"\n--- {path.name}\n{path.read_text()[-2000:]}" for path in folder.glob("*.log"))


def kept(promised, printed):
    """Whether every line of the promise was printed, in order; `...` is anything, blanks are of any width."""
    lines = iter(printed.splitlines())
    return all(any(matches(wanted, line) for line in lines) for wanted in promised.splitlines())


def matches(wanted, line):
    """Whether a line is as the page shows it."""
    words = [
        ".*?" if word == ANYTHING else re.escape(word).replace(r"\.\.\.", ".*?") for word in wanted.split()
    ]
    return re.fullmatch(r"\s*" + r"\s*".join(words) + r"\s*", line) is not None
