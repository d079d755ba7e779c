"""Every broken plugin against every check: which fail beside the one that is to fail.

python -m tests.unit.conformance.every_check [PATTERN]
"""

import asyncio
import logging
import sys
from fnmatch import fnmatch

from tests.unit.conformance.broken import failed, verified
from tests.unit.conformance.every_fault import FAULTS


async def main(pattern):
    """How many broken plugins failed anything else than their own check."""
    wrong = 0
    for name, fault in FAULTS.items():
        if not fnmatch(name, pattern):
            continue
        found = failed(await verified(fault))
        if set(found) != {name}:
            wrong += 1
            sys.stdout.write(f"{name}: {found}\n")
    sys.stdout.write(f"{wrong} broken plugins failed anything else than their own check\n")
    return wrong


if __name__ == "__main__":
    logging.disable()
    sys.exit(bool(asyncio.run(main(*(sys.argv[1:] or ["*"])))))
