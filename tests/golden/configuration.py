"""Kind config: what becomes of a KubeSchedulerConfiguration file."""

from typing import Any

from berth.config import ConfigError, load

YAML_SYNTAX = "yaml: "
JSON_SYNTAX = "couldn't get version/kind; json parse error: "
JSON_TYPES = f"{JSON_SYNTAX}json: "


async def answer(scenario: dict[str, Any]) -> tuple[dict[str, Any], frozenset[str]]:
    """Validity, plugin lists in order, and errors."""
    try:
        profiles = load(scenario["input_yaml"]).profiles
    except ConfigError as error:
        return outcome({}, list(error.messages)), frozenset()
    resolved = {
        profile.scheduler_name: {
            point.value: [list(plugin) for plugin in plugins] for point, plugins in profile.points.items()
        }
        for profile in profiles
    }
    return outcome(resolved, []), frozenset()


def outcome(resolved: dict[str, Any], errors: list[str]) -> dict[str, Any]:
    """Errors of validation come in any order; what is wrong with broken text are the parser's own words."""
    return {"valid": not errors, "resolved": resolved, "errors": sorted(map(comparable, errors))}


def comparable(error: str) -> str:
    """The part of an error that has to be equal."""
    if error.startswith(YAML_SYNTAX):
        return YAML_SYNTAX
    broken_json = error.startswith(JSON_SYNTAX) and not error.startswith(JSON_TYPES)
    return JSON_SYNTAX if broken_json else error
