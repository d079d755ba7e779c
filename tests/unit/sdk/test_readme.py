"""What the README shows works as shown."""

import re
from pathlib import Path

import berth_sdk

README = Path(berth_sdk.__file__).parents[2] / "README.md"


async def test_readme(monkeypatch):
    """The plugin of the README is complete, and its test passes."""
    served = []
    monkeypatch.setattr(berth_sdk, "serve", lambda plugin, address: served.append((plugin.name, address)))
    names = {"__name__": "readme"}
    for block in re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL):
        exec(block, names)

    assert [("team-nodes", "unix:/run/berth/team-nodes.sock")] == served
    await names["test_other_teams_are_kept_out"]()
