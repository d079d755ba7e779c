"""The list of plugins, followed while the scheduler runs."""

import logging

import pytest

from berth.out_of_tree.lifecycle.wanted import AttachError
from berth.scheduler.sidecars.plugin_list_file import PluginListFile
from tests.failures.reporting import reports

HEAD = "apiVersion: berth.dev/v1alpha1\nkind: PluginList\nplugins:"


class Attaching:
    """Stands for the host's: notes what it is asked for, refuses plugins called `bad`."""

    def __init__(self):
        self.asked = []

    async def attach(self, wanted, *, insists):
        assert insists, "what a list says stays wanted"
        if wanted.spec.name == "bad":
            raise AttachError("bad is not ready")
        self.asked.append((wanted.spec.name, wanted.spec.args))
        return [f"profile p has arguments of its own for {wanted.spec.name}"] if wanted.spec.args == 9 else []

    async def detach(self, name):
        self.asked.append((name, "gone"))


class Followed:
    def __init__(self, path):
        self.path, self.attaching = path, Attaching()
        self.file = PluginListFile(str(path), {}, self.attaching, self.keep)

    async def keep(self):
        """There is nothing to keep."""

    async def after(self, *entries):
        """Give what was asked for once the file has these entries."""
        self.attaching.asked.clear()
        listed = "".join(
            f"\n- {{name: {name}, address: 'unix:/x/{name}', args: {args}}}" for name, args in entries
        )
        self.path.write_text(HEAD + (listed or " []"))
        await self.file.look()
        return list(self.attaching.asked)


@pytest.fixture
def followed(tmp_path):
    return Followed(tmp_path / "plugins.yaml")


async def test_changes(followed):
    """What is new or changed is attached, what is no longer listed is detached, the rest is left alone."""
    assert [("a", 1), ("b", 1)] == await followed.after(("a", 1), ("b", 1))
    assert [] == await followed.after(("a", 1), ("b", 1))
    assert [("b", 2)] == await followed.after(("a", 1), ("b", 2))
    assert [("a", "gone")] == await followed.after(("b", 2))


@reports(
    "arguments-lose",
    log="`arguments of the list have no effect`",
    answer="`berth plugin attach`: a line for each profile",
)
async def test_arguments_without_effect(followed, caplog):
    """Arguments that stand behind a profile's own are said to have no effect."""
    await followed.after(("a", 9))

    (line,) = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert (
        "arguments of the list have no effect plugin=a note=profile p has arguments of its own for a" == line
    )


@reports("list-wrong", log="`list of plugins not taken over`, with file, field and remedy; the old one stays")
async def test_wrong_list(followed, caplog):
    """A list that is wrong changes nothing, and the next one that is right is taken over."""
    await followed.after(("a", 1))
    followed.path.write_text("kind: Nonsense")
    with caplog.at_level(logging.ERROR):
        await followed.file.look()
    assert "list of plugins not taken over" in caplog.text

    assert [("a", 2)] == await followed.after(("a", 2))


@reports("list-entry-fails", log="`plugin stays as it was`, with the cause")
async def test_one_fails(followed, caplog):
    """A plugin that cannot be had does not keep the others waiting."""
    with caplog.at_level(logging.ERROR):
        assert [("good", 1)] == await followed.after(("bad", 1), ("good", 1))
    assert "plugin stays as it was plugin=bad err=bad is not ready" in caplog.text


@reports("list-away", log="`list of plugins not read`")
async def test_file_away(followed, caplog):
    """A file that cannot be read is not an empty list."""
    await followed.after(("a", 1))
    followed.path.unlink()
    followed.attaching.asked.clear()
    for _ in range(3):
        await followed.file.look()

    assert [] == followed.attaching.asked
    assert 1 == caplog.text.count("list of plugins not read")
