"""An expression made ready to run: a function of its variables, as nested closures.

Source: cel-spec doc/langdef.md, "Evaluation", "Macros"; cel-go ext (bindings, two-variable comprehensions,
optional types).
"""

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from berth.cel.errors import CELError, EvaluationError, SyntaxProblemError
from berth.cel.functions import FUNCTIONS, METHODS, NAMESPACED
from berth.cel.operators import OPERATORS, truth
from berth.cel.syntax import (
    Call,
    Index,
    Listing,
    Literal,
    Mapped,
    Name,
    Node,
    Select,
    parse,
)
from berth.cel.values import NONE, OptionalValue, type_name

Variables = Mapping[str, Any]
Evaluate = Callable[[Variables], Any]


@lru_cache(maxsize=4096)
def program(text: str) -> Evaluate:
    """A function that gives the expression's value for its variables.

    Raises: SyntaxProblemError; the returned function: EvaluationError.
    """
    return _compiled(parse(text))


def _compiled(node: Node) -> Evaluate:  # noqa: PLR0911 - an answer for each kind of node
    match node:
        case Literal(value):
            return lambda _: value
        case Name(name):
            return lambda variables: _variable(variables, name)
        case Select(operand, field, optional):
            return _select(_compiled(operand), field, optional=optional)
        case Index(operand, index, optional):
            return _index(_compiled(operand), _compiled(index), optional=optional)
        case Listing(elements):
            return _list([(optional, _compiled(element)) for optional, element in elements])
        case Mapped(entries):
            return _map([(optional, _compiled(k), _compiled(v)) for optional, k, v in entries])
        case Call():
            return _call(node)


def _variable(variables: Variables, name: str) -> Any:
    try:
        return variables[name]
    except KeyError:
        raise EvaluationError(f"undeclared reference to '{name}'") from None


def _list(elements: list[tuple[bool, Evaluate]]) -> Evaluate:
    def build(variables: Variables) -> list[Any]:
        found = []
        for optional, element in elements:
            value = element(variables)
            if not optional:
                found.append(value)
            elif _optional(value).present:
                found.append(value.value)
        return found

    return build


def _map(entries: list[tuple[bool, Evaluate, Evaluate]]) -> Evaluate:
    def build(variables: Variables) -> dict[Any, Any]:
        found = {}
        for optional, key, element in entries:
            name, value = key(variables), element(variables)
            if not optional:
                found[name] = value
            elif _optional(value).present:
                found[name] = value.value
        return found

    return build


def _optional(value: Any) -> OptionalValue:
    if not isinstance(value, OptionalValue):
        raise EvaluationError(f"expected an optional value, got {type_name(value)}")
    return value


def _select(operand: Evaluate, field: str, *, optional: bool) -> Evaluate:
    def select(variables: Variables) -> Any:
        value = operand(variables)
        if optional or isinstance(value, OptionalValue):
            return _if_present(value, field)
        return _field(value, field)

    return select


def _field(value: Any, field: str) -> Any:
    if not isinstance(value, dict):
        raise EvaluationError(f"type '{type_name(value)}' does not support field selection")
    if field not in value:
        raise EvaluationError(f"no such key: {field}")
    return value[field]


def _if_present(value: Any, key: Any) -> OptionalValue:
    if isinstance(value, OptionalValue):
        if not value.present:
            return NONE
        value = value.value
    if isinstance(value, dict):
        return OptionalValue(present=True, value=value[key]) if key in value else NONE
    if isinstance(value, list) and _is_position(key):
        return OptionalValue(present=True, value=value[int(key)]) if 0 <= key < len(value) else NONE
    raise EvaluationError(f"type '{type_name(value)}' does not support optional selection")


def _index(operand: Evaluate, index: Evaluate, *, optional: bool) -> Evaluate:
    def entry(variables: Variables) -> Any:
        value, key = operand(variables), index(variables)
        if optional or isinstance(value, OptionalValue):
            return _if_present(value, key)
        if isinstance(value, dict):
            try:
                return value[key]
            except (KeyError, TypeError):
                raise EvaluationError(f"no such key: {key}") from None
        if isinstance(value, list) and _is_position(key):
            if not 0 <= key < len(value):
                raise EvaluationError(f"index out of bounds: {key}")
            return value[int(key)]
        raise EvaluationError(f"no such overload: {type_name(value)}[{type_name(key)}]")

    return entry


def _is_position(key: Any) -> bool:
    return isinstance(key, int | float) and not isinstance(key, bool) and key == int(key)


def _call(node: Call) -> Evaluate:
    if node.target is not None:
        return _method(node, node.target)
    if node.function == "has":
        return _has(node)
    arguments = [_compiled(argument) for argument in node.arguments]
    match node.function:
        case "&&" | "||":
            return _lazy(arguments, decided=node.function == "||")
        case "_?_:_":
            return _ternary(*arguments)
    function = OPERATORS.get(node.function) or FUNCTIONS.get(node.function)
    if function is None:
        raise SyntaxProblemError(f"undeclared reference to '{node.function}'")
    return _applied(node.function, function, arguments)


def _applied(name: str, function: Callable[..., Any], arguments: list[Evaluate]) -> Evaluate:
    def apply(variables: Variables) -> Any:
        values = [argument(variables) for argument in arguments]
        try:
            return function(*values)
        except (TypeError, AttributeError, ValueError, KeyError, IndexError):
            kinds = ", ".join(type_name(value) for value in values)
            raise EvaluationError(f"no such overload: {name}({kinds})") from None

    return apply


def _lazy(arguments: list[Evaluate], *, decided: bool) -> Evaluate:
    """`&&` and `||`: one side that decides makes up for an error on the other."""
    left, right = arguments

    def evaluate(variables: Variables) -> bool:
        try:
            if truth(left(variables)) is decided:
                return decided
        except CELError:
            if truth(right(variables)) is decided:
                return decided
            raise
        return truth(right(variables))

    return evaluate


def _ternary(condition: Evaluate, then: Evaluate, otherwise: Evaluate) -> Evaluate:
    return lambda variables: then(variables) if truth(condition(variables)) else otherwise(variables)


def _has(node: Call) -> Evaluate:
    match node.arguments:
        case (Select(operand, field, _),):
            container = _compiled(operand)
        case _:
            raise SyntaxProblemError("has() takes a field selection")

    def has(variables: Variables) -> bool:
        value = container(variables)
        if isinstance(value, OptionalValue):
            return _if_present(value, field).present
        if not isinstance(value, dict):
            raise EvaluationError(f"type '{type_name(value)}' does not support field selection")
        return field in value

    return has


def _method(node: Call, target: Node) -> Evaluate:
    macro = MACROS.get((node.function, len(node.arguments)))
    if isinstance(target, Name):
        if (target.name, node.function) == ("cel", "bind"):
            return _bind(node)
        function = NAMESPACED.get(f"{target.name}.{node.function}")
        if function is not None:
            return _applied(node.function, function, [_compiled(a) for a in node.arguments])
    if macro is not None:
        return macro(_compiled(target), node)
    method = METHODS.get(node.function)
    if method is None:
        raise SyntaxProblemError(f"undeclared reference to '{node.function}'")
    return _applied(node.function, method, [_compiled(target), *(_compiled(a) for a in node.arguments)])


def _bind(node: Call) -> Evaluate:
    match node.arguments:
        case (Name(name), value, body):
            bound, inner = _compiled(value), _compiled(body)
        case _:
            raise SyntaxProblemError("cel.bind() takes a name, a value and an expression")
    return lambda variables: inner({**variables, name: bound(variables)})


# Macros: their last arguments are evaluated once for each element.

Macro = Callable[[Evaluate, Call], Evaluate]


def _names(node: Call, count: int) -> list[str]:
    names = [argument.name for argument in node.arguments[:count] if isinstance(argument, Name)]
    if len(names) != count:
        raise SyntaxProblemError(f"{node.function}() takes names first")
    return names


def _each(value: Any, names: list[str], variables: Variables) -> Iterator[Variables]:
    if isinstance(value, dict):
        pairs: Any = value.items()
        singles: Any = value
    elif isinstance(value, list):
        pairs, singles = enumerate(value), value
    else:
        raise EvaluationError(f"no such overload: a comprehension over {type_name(value)}")
    if len(names) == 1:
        for single in singles:
            yield {**variables, names[0]: single}
    else:
        for first, second in pairs:
            yield {**variables, names[0]: first, names[1]: second}


def _quantified(names_count: int, *, decided: bool) -> Macro:
    """`all` and `exists`: an element that decides makes up for errors on others."""

    def macro(target: Evaluate, node: Call) -> Evaluate:
        names, condition = _names(node, names_count), _compiled(node.arguments[names_count])

        def evaluate(variables: Variables) -> bool:
            failure: CELError | None = None
            for inner in _each(target(variables), names, variables):
                try:
                    if truth(condition(inner)) is decided:
                        return decided
                except CELError as error:
                    failure = failure or error
            if failure is not None:
                raise failure
            return not decided

        return evaluate

    return macro


def _exactly_one(names_count: int) -> Macro:
    def macro(target: Evaluate, node: Call) -> Evaluate:
        names, condition = _names(node, names_count), _compiled(node.arguments[names_count])

        def evaluate(variables: Variables) -> bool:
            return sum(truth(condition(i)) for i in _each(target(variables), names, variables)) == 1

        return evaluate

    return macro


def _transformed(names_count: int, *, filtered: bool) -> Macro:
    def macro(target: Evaluate, node: Call) -> Evaluate:
        names = _names(node, names_count)
        condition = _compiled(node.arguments[names_count]) if filtered else _always
        value = _compiled(node.arguments[-1])

        def evaluate(variables: Variables) -> list[Any]:
            every = _each(target(variables), names, variables)
            return [value(inner) for inner in every if truth(condition(inner))]

        return evaluate

    return macro


def _always(variables: Variables) -> bool:
    del variables
    return True


def _filter(target: Evaluate, node: Call) -> Evaluate:
    names, condition = _names(node, 1), _compiled(node.arguments[1])

    def evaluate(variables: Variables) -> list[Any]:
        every = _each(target(variables), names, variables)
        return [inner[names[0]] for inner in every if truth(condition(inner))]

    return evaluate


def _opt_map(*, flat: bool) -> Macro:
    def macro(target: Evaluate, node: Call) -> Evaluate:
        names, value = _names(node, 1), _compiled(node.arguments[1])

        def evaluate(variables: Variables) -> OptionalValue:
            held = _optional(target(variables))
            if not held.present:
                return NONE
            found = value({**variables, names[0]: held.value})
            return _optional(found) if flat else OptionalValue(present=True, value=found)

        return evaluate

    return macro


MACROS: Mapping[tuple[str, int], Macro] = {
    ("all", 2): _quantified(1, decided=False),
    ("all", 3): _quantified(2, decided=False),
    ("exists", 2): _quantified(1, decided=True),
    ("exists", 3): _quantified(2, decided=True),
    ("exists_one", 2): _exactly_one(1),
    ("existsOne", 2): _exactly_one(1),
    ("existsOne", 3): _exactly_one(2),
    ("map", 2): _transformed(1, filtered=False),
    ("map", 3): _transformed(1, filtered=True),
    ("transformList", 3): _transformed(2, filtered=False),
    ("transformList", 4): _transformed(2, filtered=True),
    ("filter", 2): _filter,
    ("optMap", 2): _opt_map(flat=False),
    ("optFlatMap", 2): _opt_map(flat=True),
}
