"""`berth plugin`: sidecars of a running scheduler."""

import json
from pathlib import Path
from typing import Any

import click

from berth.cli.failing import fail
from berth.cli.plugins.pages import (
    described_lines,
    described_resource_lines,
    listed_lines,
    listed_resource_lines,
)
from berth.cli.plugins.resource import Keeper
from berth.cli.plugins.target import NAMES_A_SCHEDULER, Target, asks_for_plugins
from berth.cli.verbs import Verbs

_OUTPUT = click.option(
    "-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True
)


@click.group(
    cls=Verbs,
    elsewhere={
        "init": "berth.commands.plugin_init:init",
        "record": "berth.commands.plugin_recording:record",
        "replay": "berth.commands.plugin_recording:replay",
        "verify": "berth.commands.plugin_verify:verify",
    },
)
def plugin() -> None:
    """Plugins of schedulers, listed, attached, shadowed, recorded; init, verify need none.

    They are those of a namespace's Schedulers (-n), which an operator keeps, or of one scheduler's process
    (--server). Without either the kubeconfig's cluster is asked, and without a kubeconfig this machine's
    scheduler.
    """


@plugin.command("list")
@NAMES_A_SCHEDULER
@asks_for_plugins
@_OUTPUT
def list_(target: Target, output: str) -> None:
    """Show every plugin in a line."""
    if isinstance(target, Keeper):
        plugins = target.listed()
        _show({"plugins": plugins}, output, listed_resource_lines(plugins))
        return
    answer = target.ask("/plugins")
    _show(answer, output, listed_lines(answer["plugins"]))


@plugin.command()
@click.argument("name")
@asks_for_plugins
@_OUTPUT
def describe(name: str, target: Target, output: str) -> None:
    """Show everything about a plugin: conditions, points, policy, arguments, state.

    Of a SchedulerPlugin it is what its Schedulers report; versions, calls and last failures are of one
    process (--server).
    """
    if isinstance(target, Keeper):
        resource, schedulers = target.described(name)
        _show(resource, output, described_resource_lines(resource, schedulers))
        return
    answer = target.ask(f"/plugins/{name}")
    _show(answer, output, described_lines(answer))


@plugin.command()
@click.argument("name", required=False)
@NAMES_A_SCHEDULER
@asks_for_plugins
@click.option(
    "-f", "--filename", type=click.Path(path_type=Path, exists=True), help="A PluginList, which says it all."
)
@click.option("--address", default="", help="unix:/path/to.sock or host:port.")
@click.option("--profile", "profiles", multiple=True, help="A profile that gets the plugin; repeatable.")
@click.option("--weight", default=1, show_default=True, help="What its scores count in those profiles.")
@click.option("--args", "arguments", default="", help="The plugin's arguments, as a JSON object.")
@click.option("--timeout", default="", help="How long a call may take, such as 200ms.")
@click.option("--shadow", is_flag=True, help="Only compare what it says; it has no say itself.")
@click.option("--image", default="", help="On a cluster: the image of a sidecar, instead of --address.")
@click.pass_context
def attach(
    context: click.Context,
    /,
    *,
    name: str | None,
    target: Target,
    filename: Path | None,
    image: str,
    **entry: Any,
) -> None:
    """Attach a plugin, replace it by another version, or configure it anew.

    On a cluster the SchedulerPlugin is made, or changed where options are given, and the Scheduler runs it.

    One process (--server) takes it for as long as the answer says; a standby names the leader, and a
    scheduler that an operator keeps refuses it. An entry of a plugin that is there with another address
    replaces it: the new version gets ready beside the old one, which ends what it began.
    """
    if isinstance(target, Keeper):
        if name is None:
            fail("on a cluster it takes a plugin's NAME; berth config to-crd makes resources of a list")
        given = {field: value for field, value in entry.items() if _is_given(context, field)}
        click.echo(target.attach(name, _fields(**given) | ({"image": image} if image else {})))
        return
    if image:
        fail("--image is for a cluster (-n): one process takes --address")
    if (name is None) == (filename is None):
        fail("give either a plugin's NAME with --address, or -f with a list")
    body = filename.read_bytes() if filename is not None else _list_of(str(name), **entry)
    answer = target.ask("/plugins", "PUT", body)
    for attached in answer["plugins"]:
        click.echo(f"{attached} attached")
    click.echo(answer["message"])


@plugin.command()
@click.argument("name")
@NAMES_A_SCHEDULER
@asks_for_plugins
@click.option("--profile", "profiles", multiple=True, help="Only from this profile; repeatable.")
def detach(name: str, target: Target, *, profiles: tuple[str, ...]) -> None:
    """Take a plugin out of all profiles, once the attempts that began with it have ended.

    On a cluster all Schedulers of the namespace that run it are meant, unless one is named; the
    SchedulerPlugin stays. In one process (--server) it holds for as long as the answer says; a standby names
    the leader.
    """
    if isinstance(target, Keeper):
        click.echo(target.detach(name, profiles))
        return
    answer = target.ask(f"/plugins/{name}", "DELETE", profile=list(profiles))
    click.echo(f"{name} detached\n{answer['message']}")


@plugin.command()
@click.argument("name")
@asks_for_plugins
@click.option("--off", is_flag=True, help="Let it take part again.")
def shadow(name: str, target: Target, *, off: bool) -> None:
    """Let a plugin see what is scheduled and have no say in it: its answers are compared and counted.

    Attempts that began with it end with it first. On a cluster it reaches all replicas within a minute, and
    lasts. In one process (--server) it holds for as long as the answer says, or until the plugin's entry in
    the list changes; a standby names the leader.
    """
    if isinstance(target, Keeper):
        click.echo(target.shadow(name, on=not off))
        return
    answer = target.ask(f"/plugins/{name}/shadow", "DELETE" if off else "PUT")
    click.echo(f"{name} takes part" if off else f"{name} is in shadow")
    click.echo(answer["message"])


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


def _show(answer: dict[str, Any], output: str, lines: list[str]) -> None:
    click.echo(json.dumps(answer, indent=2) if output == "json" else "\n".join(lines))
