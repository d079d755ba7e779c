"""What users wrote is shown on the page, whatever it would do to what stands around it."""

import json
import subprocess
from pathlib import Path

from berth import live_page
from tests.node_toolchain import NODE

HOSTILE = "\x1b[2J\r\u202eabc\u2066\x85\u2028\u200b\U000e0001größe 😀\n"
MODULE = Path(live_page.__file__).parent / "static" / "elements.js"


def test_hidden_characters_are_shown_as_json_writes_them():
    script = f'import {{ shown }} from "{MODULE.as_uri()}"; console.log(shown({json.dumps(HOSTILE)}))'
    run = [NODE, "--input-type=module", "--eval", script]
    found = subprocess.run(run, capture_output=True, text=True, check=True).stdout.removesuffix("\n")

    assert "größe 😀\n" == found[-len("größe 😀\n") :]
    assert found.removesuffix("\n").isprintable()
    assert HOSTILE == json.loads(f'"{found}"', strict=False)
