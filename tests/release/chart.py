"""The Helm chart: the overlay `secondary` as templates, with what users change taken from values.

Its name, values, their schema and notes are written by hand in kustomize/helm; all objects come of kustomize.
"""

import re
import shutil
from pathlib import Path
from typing import Any

import yaml

from tests.go_toolchain import ROOT
from tests.release.manifests import kustomized

SOURCE = ROOT / "kustomize/helm"
OVERLAY = ROOT / "kustomize/overlays/secondary"
CRDS = ROOT / "kustomize/crds"
NAMESPACE = "berth-system"
PREFIX = "berth/"

_CONDITIONS = {"NetworkPolicy": ".Values.networkPolicy.enabled", "Scheduler": ".Values.scheduler.create"}
"""Kinds that a release may leave out."""


def write(folder: Path, version: str) -> Path:
    """Write the chart as a folder; gives its path."""
    chart = folder / "berth"
    shutil.copytree(SOURCE, chart)
    described = yaml.safe_load((chart / "Chart.yaml").read_text(encoding="utf-8"))
    described |= {"version": version, "appVersion": version}
    (chart / "Chart.yaml").write_text(yaml.safe_dump(described, sort_keys=False), encoding="utf-8")
    (chart / "crds").mkdir()
    for definition in sorted(CRDS.glob("scheduler*.yaml")):
        shutil.copy(definition, chart / "crds")
    for path, text in templates().items():
        with (chart / "templates" / path).open("a", encoding="utf-8") as file:
            file.write(text)
    return chart


def templates() -> dict[str, str]:
    """The text of each template by its file, a file for each kind.

    The namespace is not among them: it is there before the release is.
    """
    found: dict[str, str] = {}
    for document in kustomized(OVERLAY):
        kind = document["kind"]
        if kind != "Namespace":
            file = f"{kind.lower()}.yaml"
            found[file] = found.get(file, "") + _template(document)
    return found


def _template(document: dict[str, Any]) -> str:
    expressions = _Expressions()
    kind = document["kind"]
    marked = _marked(document, expressions)
    if kind == "Deployment":
        _open_deployment(marked, expressions)
    if kind == "Scheduler":
        marked["metadata"]["name"] = expressions.mark("{{ .Values.scheduler.name }}")
        marked["spec"] = expressions.block(".Values.scheduler.spec", indent=2)
    text = expressions.put_into(yaml.safe_dump(marked, sort_keys=False, width=1000))
    if condition := _CONDITIONS.get(kind):
        text = f"{{{{- if {condition} }}}}\n{text}{{{{- end }}}}\n"
    return f"---\n{text}"


def _open_deployment(deployment: dict[str, Any], expressions: "_Expressions") -> None:
    """Let values decide how many operators there are, where they run and what they may use."""
    deployment["spec"]["replicas"] = expressions.mark("{{ .Values.operator.replicas }}")
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    container["resources"] = expressions.block(".Values.operator.resources", indent=10)
    for variable in container["env"]:
        if variable["name"] == "BERTH_EXPLAIN_SERVICE":
            switch = f'ternary "{variable["value"]}" "" .Values.explain.enabled'
            variable["value"] = expressions.mark(f"{{{{ {switch} | quote }}}}")
    container["imagePullPolicy"] = expressions.mark("{{ .Values.image.pullPolicy }}")
    for field, value in (
        ("imagePullSecrets", ".Values.image.pullSecrets"),
        ("nodeSelector", ".Values.operator.nodeSelector"),
        ("tolerations", ".Values.operator.tolerations"),
    ):
        pod[field] = expressions.optional(value, indent=8)


def _marked(value: Any, expressions: "_Expressions") -> Any:
    """The document with marks where the namespace and images stand."""
    match value:
        case dict():
            return {key: _marked(each, expressions) for key, each in value.items()}
        case list():
            return [_marked(each, expressions) for each in value]
        case str() if value == NAMESPACE:
            return expressions.mark("{{ .Release.Namespace }}")
        case str() if value.startswith(PREFIX):
            name = value.removeprefix(PREFIX).partition(":")[0]
            return expressions.mark(f'{{{{ include "berth.image" (dict "root" . "name" "{name}") }}}}')
    return value


class _Expressions:
    """Words that stand for expressions of a template while the document is still data."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def mark(self, text: str) -> str:
        """A word for an expression that gives a scalar."""
        word = f"expression-{len(self._texts):03}-"
        self._texts[word] = text
        return word

    def block(self, value: str, indent: int) -> str:
        """A word for an expression that gives a mapping or a list, on lines of its own."""
        return self.mark(f"{{{{- toYaml {value} | nindent {indent} }}}}")

    def optional(self, value: str, indent: int) -> str:
        """A word for a field that is left out, with its line, where its value is empty."""
        return self.mark(f"{{{{- with {value} }}}}{{{{- toYaml . | nindent {indent} }}}}{{{{- end }}}}")

    def put_into(self, text: str) -> str:
        """The text with every word replaced by its expression."""
        for word, expression in self._texts.items():
            condition, _, rest = expression.partition("}}")
            if condition.startswith("{{- with "):
                line = rf"^( *\S+:) {word}$"
                text = re.sub(line, rf"{condition}}}}}\n\1 {rest}", text, flags=re.MULTILINE)
            text = text.replace(word, expression)
        return text
