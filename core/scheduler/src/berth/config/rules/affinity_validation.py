"""Rules for a node affinity in plugin arguments.

Source: k8s.io/component-helpers scheduling/corev1/nodeaffinity, apimachinery pkg/labels (v0.36).
"""

import re
from collections.abc import Iterator

from berth.config.plugin_args import NodeAffinitySpec, NodeSelectorRequirement, NodeSelectorTerm
from berth.config.rules.field_errors import EnumText, invalid, unsupported
from berth.config.rules.names import label_value_problems, qualified_name_problems

LABEL_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
FIELD_OPERATORS = ("In", "NotIn")
_INTEGER = re.compile(r"[-+]?[0-9]{1,40}")
_INT64 = range(-(1 << 63), 1 << 63)


def affinity_errors(affinity: NodeAffinitySpec, path: str) -> Iterator[str]:
    """Give what is wrong with an affinity; terms without effect are not looked at."""
    required = affinity.required_during_scheduling_ignored_during_execution
    terms_path = f"{path}.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
    for index, term in enumerate(required.node_selector_terms if required else ()):
        yield from _term_errors(term, f"{terms_path}[{index}]")
    terms_path = f"{path}.preferredDuringSchedulingIgnoredDuringExecution"
    for index, preferred in enumerate(affinity.preferred_during_scheduling_ignored_during_execution):
        if preferred.weight != 0:
            yield from _term_errors(preferred.preference, f"{terms_path}[{index}]")


def _term_errors(term: NodeSelectorTerm, path: str) -> Iterator[str]:
    for index, requirement in enumerate(term.match_expressions):
        yield from _label_errors(requirement, f"{path}.matchExpressions[{index}]")
    for index, requirement in enumerate(term.match_fields):
        yield from _field_errors(requirement, f"{path}.matchFields[{index}]")


def _label_errors(requirement: NodeSelectorRequirement, path: str) -> Iterator[str]:
    if requirement.operator not in LABEL_OPERATORS:
        yield unsupported(f"{path}.operator", EnumText(requirement.operator), LABEL_OPERATORS)
        return
    if problems := qualified_name_problems(requirement.key):
        yield invalid(f"{path}.key", requirement.key, "; ".join(problems))
    yield from _operand_errors(requirement, f"{path}.values")
    for index, value in enumerate(requirement.values or ()):
        if problems := label_value_problems(value):
            yield invalid(f"{path}.values[{index}][{requirement.key}]", value, "; ".join(problems))


def _operand_errors(requirement: NodeSelectorRequirement, path: str) -> Iterator[str]:
    values, operator = requirement.values, requirement.operator
    if operator in {"In", "NotIn"}:
        if not values:
            yield invalid(path, values, "for 'in', 'notin' operators, values set can't be empty")
    elif operator in {"Exists", "DoesNotExist"}:
        if values:
            yield invalid(path, values, "values set must be empty for exists and does not exist")
    else:
        comparison = "for 'Gt', 'Lt' operators,"
        if len(values or ()) != 1:
            yield invalid(path, values, f"{comparison} exactly one value is required")
        for index, value in enumerate(values or ()):
            if not _is_int64(value):
                yield invalid(f"{path}[{index}]", value, f"{comparison} the value must be an integer")


def _is_int64(text: str) -> bool:
    return bool(_INTEGER.fullmatch(text)) and int(text) in _INT64


def _field_errors(requirement: NodeSelectorRequirement, path: str) -> Iterator[str]:
    if requirement.operator not in FIELD_OPERATORS:
        yield unsupported(f"{path}.operator", EnumText(requirement.operator), FIELD_OPERATORS)
    elif len(requirement.values or ()) != 1:
        yield invalid(f"{path}.values", requirement.values, "must have one element")
