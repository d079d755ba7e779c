"""Where the live page is on the secure port."""

ROOT = "/live"
STATE = f"{ROOT}/state.json"
NODES = f"{ROOT}/nodes.json"
