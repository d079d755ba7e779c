"""docs/conformance.md: the list of checks, made from the checks themselves.

`python -m berth.conformance.page` prints the page.
"""

from berth.conformance import CHECKS

HEAD = """\
# Conformance of plugins

    berth plugin verify unix:/run/berth/my-plugin.sock

puts a running plugin to the test: it plays the host's side of [the protocol](protocol.md) with a small
synthetic cluster, and says of each check whether it passed, failed (what was expected, what came, which
section of the protocol says so) or was skipped, and why.
Neither scheduler nor API server takes part. A plugin in use is not to be verified: its state is replaced.

| option | meaning |
|---|---|
| `--args JSON`, `--profile NAME` | the arguments to configure, and the profile that they are for |
| `--pods FILE`, `--nodes FILE` | objects that the plugin has something to say about, before the kit's own |
| `--only PATTERN`, `--skip PATTERN` | which checks to run, such as `sync/*`; repeatable |
| `--list` | list the checks |
| `-o json` | a report for machines |
| `--timeout SECONDS` | how long one answer may take |
| `--trace-file FILE` | where the plugin writes its spans (`BERTH_TRACE_FILE`), for `trace/spans` |
| `--pid PID` | the plugin's process, which is ended at last, for `stop/ends` |
| `--ca`, `--cert`, `--key` | certificates, for a plugin over TCP |

Exit code 0: all checks passed or were skipped; 1: some failed; 2: they could not be run.

A check is skipped where the plugin does not announce what it is about, and where a check that it builds
upon failed. What a plugin decides is its own business: the kit compares its answers with one another. So some
checks say more where the sample pods meet nodes that the plugin turns down, or reservations that show: give
such pods and nodes.

For each check there is a plugin that breaks just that (`tests/unit/conformance`): it fails that check
and no other. The plugins of this repository, each SDK's template, and with each SDK a plugin that orders
the queue and places pod groups pass all that apply to them, and so do
[plugins without an SDK](../out-of-tree-plugins/without-sdk) on the usual gRPC servers of six languages.

In tests the same checks are `berth.conformance`:

```python
subject, results = await verify(Options("unix:/run/berth/my-plugin.sock"), chosen(skip=["stop/*"]))
assert not [line_of(each) for each in results if each.outcome is Outcome.FAIL]
```

What a plugin decides is held by [record and replay](record-and-replay.md): the answers of a live
run against those of its next version.
"""


def page() -> str:
    """The whole page."""
    rows = [
        f"| `{each.id}` | {each.title} | {each.clause} | {', '.join(each.needs)} |"
        for each in CHECKS.values()
    ]
    table = "\n".join(("| check | claim | section of the protocol | needs |", "|---|---|---|---|", *rows))
    return f"{HEAD}\n## The {len(rows)} checks\n\n{table}\n"


if __name__ == "__main__":
    print(page(), end="")  # noqa: T201 - the page is the output
