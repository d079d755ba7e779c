"""`berth plugin`: plugins in other processes of a running scheduler."""

import json
from pathlib import Path
from typing import Any

import click

from berth.cli.asking import Server, asks_a_server
from berth.cli.failing import fail
from berth.cli.initializing import init
from berth.cli.plugin_resource import Keeper
from berth.cli.recording import record, replay
from berth.cli.verifying import verify
from berth.config.out_of_tree.sidecars import FailurePolicy
from berth.framework.counted import so_many

in_namespace = click.option(
    "-n",
    "--namespace",
    default="",
    help="Change the resources of this namespace instead of one process, where an operator keeps schedulers.",
)
by_kubeconfig = click.option(
    "--kubeconfig", default="", help="With --namespace: how to reach the API server."
)
of_scheduler = click.option(
    "--scheduler", default="", help="With --namespace: which Scheduler, where it is not the only one."
)
COLUMNS = ("name", "version", "state", "circuit", "shadow", "profiles", "address")


@click.group()
def plugin() -> None:
    """Plugins of a running scheduler, listed, attached, shadowed, recorded; init, verify need none."""


@plugin.command("list")
@asks_a_server
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def list_(server: Server, output: str) -> None:
    """Show every plugin in a line."""
    answer = server.ask("/plugins")
    if output == "json":
        click.echo(json.dumps(answer, indent=2))
        return
    rows = [COLUMNS, *([_cell(each[column]) for column in COLUMNS] for each in answer["plugins"])]
    widths = [max(len(row[i]) for row in rows) for i in range(len(COLUMNS))]
    for row in rows:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


@plugin.command()
@click.argument("name")
@asks_a_server
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def describe(name: str, server: Server, output: str) -> None:
    """Show everything about a plugin: conditions, points, policy, arguments, state."""
    answer = server.ask(f"/plugins/{name}")
    if output == "json":
        click.echo(json.dumps(answer, indent=2))
    else:
        click.echo("\n".join(_lines(answer)))


@plugin.command()
@click.argument("name", required=False)
@asks_a_server
@click.option(
    "-f", "--filename", type=click.Path(path_type=Path, exists=True), help="A PluginList, which says it all."
)
@click.option("--address", default="", help="unix:/path/to.sock or host:port.")
@click.option("--profile", "profiles", multiple=True, help="A profile that gets the plugin; repeatable.")
@click.option("--weight", default=1, show_default=True, help="What its scores count in those profiles.")
@click.option("--args", "arguments", default="", help="The plugin's arguments, as a JSON object.")
@click.option("--timeout", default="", help="How long a call may take, such as 200ms.")
@click.option("--shadow", is_flag=True, help="Only compare what it says; it has no say itself.")
@in_namespace
@of_scheduler
@click.option("--image", default="", help="With --namespace: the image of a sidecar, instead of --address.")
@by_kubeconfig
@click.pass_context
def attach(
    context: click.Context,
    /,
    *,
    name: str | None,
    server: Server,
    filename: Path | None,
    namespace: str,
    scheduler: str,
    image: str,
    kubeconfig: str,
    **entry: Any,
) -> None:
    """Attach a plugin, replace it by another version, or configure it anew.

    An entry of a plugin that is there with another address replaces it: the new version gets ready beside the
    old one, which ends what it began. It holds for as long as the answer says; a standby names the leader.
    Where an operator keeps the scheduler it takes --namespace: the SchedulerPlugin is made, or changed where
    options are given, and the Scheduler runs it.
    """
    if namespace:
        if name is None:
            fail("--namespace takes a plugin's NAME; berth config to-crd makes resources of a list")
        given = {field: value for field, value in entry.items() if _is_given(context, field)}
        spec = _fields(**given) | ({"image": image} if image else {})
        user = Keeper(namespace, kubeconfig).attach(name, spec, scheduler)
        click.echo(f"SchedulerPlugin {namespace}/{name} attached to Scheduler {user}")
        return
    if (name is None) == (filename is None):
        fail("give either a plugin's NAME with --address, or -f with a list")
    body = filename.read_bytes() if filename is not None else _list_of(str(name), **entry)
    answer = server.ask("/plugins", "PUT", body)
    for attached in answer["plugins"]:
        click.echo(f"{attached} attached")
    click.echo(answer["message"])


@plugin.command()
@click.argument("name")
@asks_a_server
@click.option("--profile", "profiles", multiple=True, help="Only from this profile; repeatable.")
@in_namespace
@of_scheduler
@by_kubeconfig
def detach(
    name: str, server: Server, *, profiles: tuple[str, ...], namespace: str, scheduler: str, kubeconfig: str
) -> None:
    """Take a plugin out of all profiles, once the attempts that began with it have ended.

    It holds for as long as the answer says; a standby names the leader. Where an operator keeps the scheduler
    it takes --namespace; the SchedulerPlugin stays.
    """
    if namespace:
        users = Keeper(namespace, kubeconfig).detach(name, profiles, scheduler)
        click.echo(f"SchedulerPlugin {namespace}/{name} detached from Scheduler {', '.join(users)}")
        return
    answer = server.ask(f"/plugins/{name}", "DELETE", profile=list(profiles))
    click.echo(f"{name} detached\n{answer['message']}")


@plugin.command()
@click.argument("name")
@asks_a_server
@click.option("--off", is_flag=True, help="Let it take part again.")
@in_namespace
@by_kubeconfig
def shadow(name: str, server: Server, *, off: bool, namespace: str, kubeconfig: str) -> None:
    """Let a plugin see what is scheduled and have no say in it: its answers are compared and counted.

    Attempts that began with it end with it first. It holds for as long as the answer says, or until the
    plugin's entry in the list changes; a standby names the leader. Where an operator keeps the scheduler
    it takes --namespace, reaches all replicas within a minute, and lasts.
    """
    if namespace:
        users = Keeper(namespace, kubeconfig).shadow(name, on=not off)
        what = "takes part" if off else "is in shadow"
        click.echo(f"SchedulerPlugin {namespace}/{name} {what} in {', '.join(users) or 'no Scheduler yet'}")
        return
    answer = server.ask(f"/plugins/{name}/shadow", "DELETE" if off else "PUT")
    click.echo(f"{name} takes part" if off else f"{name} is in shadow")
    click.echo(answer["message"])


for verb in (init, verify, record, replay):
    plugin.add_command(verb)


def _is_given(context: click.Context, field: str) -> bool:
    """Say whether an option was written, and not left at its default."""
    source = context.get_parameter_source(field)
    return source is not None and source is not click.core.ParameterSource.DEFAULT


def _list_of(
    name: str, *, address: str, profiles: tuple[str, ...], weight: int, shadow: bool, **options: str
) -> bytes:
    """Give a PluginList of one entry; without profiles its weight means nothing."""
    entry: dict[str, Any] = {"name": name, "address": address or None, "shadow": shadow}
    if profiles:
        entry |= {"profiles": list(profiles), "weight": weight}
    fields = _fields(**{option: value for option, value in options.items() if value})
    if "arguments" in fields:
        fields["args"] = fields.pop("arguments")
    document = {"apiVersion": "berth.dev/v1alpha1", "kind": "PluginList", "plugins": [entry | fields]}
    return json.dumps(document).encode()


def _fields(**options: Any) -> dict[str, Any]:
    """Give options as fields of a SchedulerPlugin's spec."""
    fields: dict[str, Any] = {
        field: list(value) if isinstance(value, tuple) else value for field, value in options.items()
    }
    if "arguments" in fields:
        try:
            fields["arguments"] = json.loads(fields["arguments"])
        except ValueError as error:
            fail(f"--args: {error}: write a JSON object")
    return fields


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ",".join(value) if isinstance(value, list) else str(value)


def _lines(answer: dict[str, Any]) -> list[str]:
    held = answer["clusterState"]
    lines = [
        f"Name:              {answer['name']}",
        f"Version:           {answer['version']}",
        f"Address:           {answer['address']}",
        f"Profiles:          {', '.join(answer['profiles'])}",
        f"Shadow:            {_cell(answer['shadow'])}",
        f"Extension points:  {', '.join(answer['extensionPoints'])}",
        f"State:             {answer['state']}",
        f"Holds:             generation {held['acknowledged']} of {held['generation']}",
        f"Starts:            {held['starts']}",
        f"Attempts now:      {answer['attempts']}",
        f"Recorded now:      {'yes' if answer.get('recording') else 'no'}",
        "Failure policy:",
        *(f"  {point}: {policy}" for point, policy in answer["failurePolicy"].items()),
        "Last failures:",
        *(f"  {_failure(each)}" for each in answer["lastFailures"]),
        "Arguments:",
        *(f"  {profile}: {json.dumps(values)}" for profile, values in answer["arguments"].items()),
        "Events:",
        *(f"  {event}" for event in answer["events"]),
        *(line for profile, known in answer["comparison"].items() for line in _comparison(profile, known)),
        "Conditions:",
    ]
    lines += [
        f"  {each['type']}: {each['status']} since {each['lastTransitionTime']}, {each['reason']}"
        + (f": {each['message']}" if each["message"] else "")
        for each in answer["conditions"]
    ]
    for old in answer["draining"]:
        recorded = ", recorded now" if old["recording"] else ""
        ends = f"{old['version']} at {old['address']}, {old['attempts']} attempts{recorded}"
        lines.append(f"Draining:          {ends}")
    return lines


def _failure(failure: dict[str, Any]) -> str:
    """A failure, how often it came, and what became of the latest pod."""
    outcome = "ignored" if failure["policy"] == FailurePolicy.IGNORE else "failed the pod"
    times = so_many(failure["count"], "time")
    about = f"{outcome} {times}, last for {failure['pod']} at {failure['lastTime']}"
    return f"{failure['point']}: {failure['error']} ({about})"


def _comparison(profile: str, known: dict[str, Any]) -> list[str]:
    """How a plugin in shadow compares with what was decided."""
    counts = ", ".join(f"{count} {outcome}" for outcome, count in known["attempts"].items()) or "none yet"
    lines = [
        f"In the shadow of {profile}:",
        f"  attempts: {counts}",
        f"  nodes it would have turned down: {known['nodesRejected']}",
    ]
    return lines + [
        f"  {each['pod']}{' on ' if each['node'] else ''}{each['node']}: {each['outcome']}"
        + (f": {each['detail']}" if each["detail"] else "")
        for each in known["latest"]
    ]
