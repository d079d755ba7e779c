"""The command line: `python -m tests.upstream`."""

import sys

from tests.upstream.table import problems, read_table


def main() -> int:
    """Print what is wrong with the table, and how many changes are in which state; 1 where one is wrong."""
    rows = read_table()
    found = problems(rows)
    print(*found, sep="\n") if found else None  # noqa: T201 - a command talks on its streams
    states = sorted({row.state for row in rows})
    counts = ", ".join(f"{sum(row.state == state for row in rows)} {state}" for state in states)
    print(f"{len(rows)} changes: {counts}")  # noqa: T201 - as above
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
