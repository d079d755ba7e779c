"""The `berth-queues-import` command: Kueue's objects as Queues.

Queues go to standard output, what has no counterpart to standard error, a line each.
"""

import argparse
import sys
from pathlib import Path

import yaml

from berth_queues.kueue import imported


def main(argv: list[str] | None = None) -> int:
    """Print the Queues; 2 if the file can't be read."""
    parser = argparse.ArgumentParser(prog="berth-queues-import", description=main.__doc__)
    parser.description = "Print Kueue's ClusterQueues, Cohorts and LocalQueues as Queues."
    parser.add_argument("file", help="YAML, such as `kubectl get clusterqueues,cohorts,localqueues -Ao yaml`")
    given = parser.parse_args(argv)
    try:
        text = sys.stdin.read() if given.file == "-" else Path(given.file).read_text(encoding="utf-8")
        documents = [each for each in yaml.safe_load_all(text) if each]
        lists = [each["items"] if str(each.get("kind")).endswith("List") else [each] for each in documents]
        found = imported(each for several in lists for each in several)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        sys.stderr.write(f"berth-queues-import: {given.file}: {error}\n")
        return 2
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        sys.stderr.write(f"berth-queues-import: {given.file}: no objects as Kueue writes them: {error!r}\n")
        return 2
    sys.stdout.write(yaml.safe_dump_all(found.queues.values(), sort_keys=False))
    for sentence in found.lacking:
        sys.stderr.write(f"not carried over: {sentence}\n")
    return 0
