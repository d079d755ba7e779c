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
Neither scheduler nor API server takes part. A plugin that a scheduler uses is not verified, since its
arguments and its state would be replaced: one that reports to be configured and synced before the kit has
asked anything is refused.

| option | meaning |
|---|---|
| `--args JSON`, `--profile NAME` | the arguments to configure, and the profile that they are for |
| `--pods FILE`, `--nodes FILE` | objects that the plugin has something to say about, before the kit's own |
| `--objects FILE` | objects of the kinds that the plugin watches |
| `--in-use` | go on with a plugin that reports to be configured and synced, when its scheduler is gone |
| `--only PATTERN`, `--skip PATTERN` | which checks to run, such as `sync/*`; repeatable |
| `--list` | list the checks |
| `-o json` | a report for machines |
| `--timeout SECONDS` | how long one answer may take |
| `--trace-file FILE` | where the plugin writes its spans (`BERTH_TRACE_FILE`), for `trace/spans` |
| `--pid PID` | the plugin's process, which is ended at last, for `stop/ends` |
| `--ca`, `--cert`, `--key` | certificates, for a plugin over TCP |

Exit code 0: all checks passed or were skipped; 1: some failed; 2: they could not be run.

A check is skipped where the plugin does not announce what it is about, and where a check that it builds
upon failed. What a plugin decides is its own business: the kit compares its answers with one another, and
takes the status ERROR for a failure, with the plugin's text.

Samples are made of the announcement. Nodes and pods carry the keys of labels and annotations that
`pod_fields`, events and arguments name (a text among the arguments may be a label's key), nodes have and pods
request the resources, and there is a pod for each pod field of which the kit knows another value. Lines
`NOT TRIED` at the end (`notTried` in JSON) say what no sample made the plugin do, such as
`Filter turned no pod down on any node`: the checks show little about that; give pods, nodes and objects that
do.

| a usual mistake | is found by |
|---|---|
| a vector that is too short | `score/answer`, `filter/answer` |
| a vector of the nodes that are asked about, not of all | `score/candidates`, `filter/one-by-one` |
| scores below 0 | `score/answer`; where pods on nodes are counted, `sync/pod-stages` |
| a function for scores that keeps state | `score/deterministic`, `score/order` |
| answers that depend on the order of questions | `filter/order`, `score/order` |
| arguments that are not checked | `configure/unknown-argument`, `configure/wrong-values` |

Arguments that are wrong are sent over the protocol, so that the last one is found in every language. With the
SDKs for Rust and Java it cannot be made: arguments are a type there, and what it does not name is refused.

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
