"""The status that both kinds share: conditions as Kubernetes' own kinds have them."""

from berth.operator.definitions.schema import Schema, choice, explained, fields, keyed, of, rule, text

_REASON_LENGTH = 1024
_MESSAGE_LENGTH = 32768
GENERATION: Schema = {
    "description": "metadata.generation of the spec that this describes; while the object's is higher, the "
    "latest change is not taken up yet.",
    "type": "integer",
    "format": "int64",
}


def conditions(about: str) -> Schema:
    """A list of conditions, distinguished by their types."""
    condition = fields(
        {
            "type": text("What the condition is about; one entry for each type.", longest=316),
            "status": choice(("True", "False", "Unknown"), "Whether it holds."),
            "observedGeneration": {**GENERATION, "minimum": 0},
            "lastTransitionTime": {
                "description": "When status last changed.",
                "type": "string",
                "format": "date-time",
            },
            "reason": text(
                "The cause in one CamelCase word, for programs; docs/operator.md lists them.",
                longest=_REASON_LENGTH,
                shortest=1,
                pattern="^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
            ),
            "message": text(
                "The cause in words, which may change between versions.", longest=_MESSAGE_LENGTH
            ),
        },
        required=("type", "status", "lastTransitionTime", "reason", "message"),
    )
    return keyed(condition, "type", about, most=16)


def condition_column(kind: str, *, priority: int = 0, name: str = "", part: str = "status") -> Schema:
    """A printer column with one condition's status, or another part of it."""
    column: Schema = {
        "name": name or kind,
        "type": "string",
        "jsonPath": f'.status.conditions[?(@.type=="{kind}")].{part}',
    }
    return {**column, "priority": priority} if priority else column


AGE: Schema = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}


def definition(
    names: Schema,
    about: str,
    spec: Schema,
    status: Schema,
    columns: list[Schema],
    *rules: Schema,
    **subresources: Schema,
) -> Schema:
    """A namespaced CustomResourceDefinition of berth.dev with one version."""
    properties = {
        "apiVersion": {"description": "The group and version, berth.dev/v1alpha1.", "type": "string"},
        "kind": {"description": f"The kind, {names['kind']}.", "type": "string"},
        # The API server describes it, and refuses a definition that does.
        "metadata": {"type": "object"},
        "spec": explained(spec),
        "status": of(
            status, "What the operator last observed. It alone writes this; what others write is replaced."
        ),
    }
    # The names of what is made of it have to stay DNS labels.
    short = rule("self.metadata.name.size() <= 40", "give it a name of 40 characters or fewer")
    version = {
        "name": "v1alpha1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": fields(properties, about, required=("spec",), rules=[short, *rules])},
        "subresources": {"status": {}, **subresources},
        "additionalPrinterColumns": columns,
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{names['plural']}.berth.dev"},
        "spec": {
            "group": "berth.dev",
            "names": {**names, "listKind": f"{names['kind']}List", "categories": ["berth"]},
            "scope": "Namespaced",
            "versions": [version],
        },
    }
