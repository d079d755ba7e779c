"""Nothing that a user wrote reaches a terminal as what it obeys."""

import json
import subprocess
import sys

import click
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from berth.cli.main import Berth
from berth.cli.printing import printed, shown

HOSTILE = "\x1b]0;owned\x07\x1b[2J\r\u202eabc\u2066\x85\u2028\u200b\U000e0001\ud800"
CHILD = f"""
import sys
from berth.cli.printing import printed
with printed():
    print({HOSTILE!r})
    print({HOSTILE!r}, file=sys.stderr)
print("after")
"""


@given(st.text(st.characters()))
def test_what_is_shown_is_printable_and_the_same_text_to_readers_of_json(text):
    visible = shown(text)

    assert all(line.isprintable() for line in visible.replace("\t", "").split("\n"))
    quoted = json.dumps(text, ensure_ascii=False)
    assert text == json.loads(shown(quoted))


def test_what_people_write_stays_as_it_is():
    assert "größe 😀\n\t日本" == shown("größe 😀\n\t日本")


def test_output_and_errors_of_every_command():
    @click.group(cls=Berth, elsewhere={})
    def group():
        pass

    @click.command()
    def hostile():
        click.echo(HOSTILE)
        sys.stdout.write(HOSTILE + "\n")
        click.echo(HOSTILE, err=True)
        raise click.ClickException(HOSTILE)

    group.get_command = lambda _ctx, _name: hostile
    result = CliRunner().invoke(group, ["hostile"])

    assert 1 == result.exit_code
    assert result.output.count("\\u202eabc") == 4
    assert all(line.isprintable() for line in result.output.split("\n"))


def test_real_streams():
    """Of a process, which prints on once it is over."""
    found = subprocess.run([sys.executable, "-c", CHILD], capture_output=True, text=True, check=True)

    assert found.stdout.endswith("\nafter\n")
    assert found.stdout.splitlines()[0] == found.stderr.splitlines()[0] == shown(HOSTILE)


def test_streams_are_given_back():
    before = sys.stdout, sys.stderr
    with printed():
        sys.stdout.write("")

    assert before == (sys.stdout, sys.stderr)
