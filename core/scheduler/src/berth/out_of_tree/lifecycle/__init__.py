"""A plugin's versions from the first word to the last: connected, attached, replaced, detached, reported."""
