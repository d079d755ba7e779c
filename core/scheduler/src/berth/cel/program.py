"""An expression made ready to run: a function of its variables, as nested closures that count what they cost.

What a node costs is cel-go's: an identifier, a field and a call one each, a list 10, a map 30, constants
nothing; a comprehension what its expansion costs for each element. See berth.cel.costs for functions.

Source: cel-spec doc/langdef.md, "Evaluation", "Macros"; cel-go ext (bindings, two-variable comprehensions,
optional types), interpreter/runtimecost.go, parser/macro.go.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from berth.cel.costs import FUNCTION_COSTS, LIST_COST, MAP_COST, Charge, one, operator_charge
from berth.cel.errors import CELError, EvaluationError, SyntaxProblemError
from berth.cel.functions import FUNCTIONS, METERED, METHODS, NAMESPACED
from berth.cel.macros import MACROS, Compiled, Compiling, Scope, bind, each, optional_value
from berth.cel.metering import COST_LIMIT, Evaluation, Look, look_at_nothing
from berth.cel.operators import OPERATORS, truth
from berth.cel.syntax import (
    MAX_LENGTH,
    CallExpr,
    IdentExpr,
    Index,
    Listing,
    Literal,
    Mapped,
    Node,
    Select,
    children,
    parse,
)
from berth.cel.values import BYTES_FOR_WORK, NONE, OptionalValue, is_number, type_name
from berth.snapshot.bounded_cache import BoundedCache

Variables = Mapping[str, Any]


class Evaluate(Protocol):
    """Gives an expression's value for its variables; what `look` raises ends it."""

    def __call__(self, variables: Variables, look: Look = look_at_nothing) -> Any:
        """The value. Raises: EvaluationError, CostLimitError."""


_NO_OVERLOAD = (TypeError, AttributeError, ValueError, LookupError, ArithmeticError)


def program(text: str, *, max_length: int = MAX_LENGTH, cost_limit: int = COST_LIMIT) -> Evaluate:
    """A function that gives the expression's value for its variables.

    Raises: SyntaxProblemError; the returned function: EvaluationError, CostLimitError.
    """
    return metered_program(text, max_length=max_length, cost_limit=cost_limit).value


class MeteredProgram:
    """A compiled expression that also says what an evaluation cost."""

    __slots__ = ("_compiled", "_cost_limit", "_slots")

    def __init__(self, node: Node, cost_limit: int) -> None:
        scope = Scope()
        self._compiled = compiled(node, scope)
        self._slots = scope.slots
        self._cost_limit = cost_limit

    def value(self, variables: Variables, look: Look = look_at_nothing) -> Any:
        """The expression's value; what `look` raises ends it. Raises: EvaluationError, CostLimitError."""
        run = Evaluation(variables, self._slots, self._cost_limit, look)
        value = self._compiled(run)
        run.spend(0)
        return value

    def cost(self, variables: Variables) -> int:
        """What an evaluation costs. Raises: EvaluationError, CostLimitError."""
        run = Evaluation(variables, self._slots, self._cost_limit)
        self._compiled(run)
        return run.cost


CACHED_CHARACTERS: Final = 2**18
"""Of the texts of all programs that are cached: a program takes a few hundred bytes for each."""

_programs: BoundedCache[tuple[str, int, int], MeteredProgram] = BoundedCache(CACHED_CHARACTERS)


def metered_program(
    text: str, *, max_length: int = MAX_LENGTH, cost_limit: int = COST_LIMIT
) -> MeteredProgram:
    """The compiled expression. Raises: SyntaxProblemError."""
    key = (text, max_length, cost_limit)
    known = _programs.get(key)
    if known is None:
        known = MeteredProgram(parse(text, max_length=max_length), cost_limit)
        _programs.put(key, known, len(text))
    return known


def compiled(node: Node, scope: Scope) -> Compiled:
    """The closure of a tree.

    Closures of nested nodes are made on a stack of their own: making them would take several of Python's
    frames for each level, evaluating them takes one.
    Raises: SyntaxProblemError.
    """
    steps: list[Compiling] = [_compiled(node, scope)]
    made: Any = None
    while steps:
        try:
            nested = steps[-1].send(made)
        except StopIteration as finished:
            steps.pop()
            made = finished.value
        else:
            steps.append(_compiled(*nested))
            made = None
    result: Compiled = made
    return result


def _compiled(node: Node, scope: Scope) -> Compiling:
    match node:
        case Literal(value):
            return lambda _: value
        case IdentExpr(name):
            return _name(name, scope)
        case Select(operand, field, optional):
            return _select((yield operand, scope), field, _steps(operand), optional=optional)
        case Index(operand, index, _):
            return _index(node, (yield operand, scope), (yield index, scope))
        case CallExpr():
            return (yield from _call(node, scope))
    parts = yield from each(children(node), scope)
    build = _list(node, parts) if isinstance(node, Listing) else _map(node, parts)
    return _folded(build) if _is_constant(node) else build


def _name(name: str, scope: Scope) -> Compiled:
    slot = scope.slot(name)
    if slot is not None:

        def bound(run: Evaluation) -> Any:
            run.cost += 1
            return run.slots[slot]

        return bound

    def variable(run: Evaluation) -> Any:
        run.cost += 1
        try:
            return run.variables[name]
        except KeyError:
            raise EvaluationError(f"undeclared reference to '{name}'") from None

    return variable


def _is_attribute(node: Node) -> bool:
    """Whether cel-go plans the node as a path from a variable."""
    return isinstance(node, IdentExpr | Select | Index) or (
        isinstance(node, CallExpr) and node.function == "_?_:_"
    )


def _steps(operand: Node) -> int:
    """What a step of a path costs: one more where the path begins at the value of a call."""
    return 1 if _is_attribute(operand) else 2


def _is_constant(node: Node) -> bool:
    match node:
        case Literal():
            return True
        case Listing(elements):
            return all(not optional and _is_constant(element) for optional, element in elements)
        case Mapped(entries):
            return all(not o and _is_constant(k) and _is_constant(v) for o, k, v in entries)
    return False


def _list(node: Listing, elements: list[Compiled]) -> Compiled:
    parts = [(optional, element) for (optional, _), element in zip(node.elements, elements, strict=True)]

    def build(run: Evaluation) -> list[Any]:
        found = []
        for optional, element in parts:
            value = element(run)
            if not optional:
                found.append(value)
            elif optional_value(value).present:
                found.append(value.value)
        run.cost += LIST_COST
        return found

    return build


def _map(node: Mapped, sides: list[Compiled]) -> Compiled:
    parts = [
        (entry[0], *pair)
        for entry, pair in zip(node.entries, zip(sides[::2], sides[1::2], strict=True), strict=True)
    ]

    def build(run: Evaluation) -> dict[Any, Any]:
        found = {}
        for optional, key, element in parts:
            name, value = key(run), element(run)
            if not isinstance(name, str | int):
                raise EvaluationError(f"unsupported key type: {type_name(name)}")
            if not optional:
                found[name] = value
            elif optional_value(value).present:
                found[name] = value.value
        run.cost += MAP_COST
        return found

    return build


def _folded(build: Compiled) -> Compiled:
    """Build what is made of constants once, as cel-go does; what cannot be built fails in the evaluation."""
    try:
        value = build(Evaluation({}, 0, COST_LIMIT))
    except CELError:
        return build
    return lambda _: value


def _select(operand: Compiled, field: str, cost: int, *, optional: bool) -> Compiled:
    def select(run: Evaluation) -> Any:
        value = operand(run)
        if optional or isinstance(value, OptionalValue):
            return _if_present(run, value, field)
        run.cost += cost
        return _field(value, field)

    return select


def _field(value: Any, field: str) -> Any:
    if not isinstance(value, dict):
        raise EvaluationError(f"type '{type_name(value)}' does not support field selection")
    try:
        return value[field]
    except KeyError:
        raise EvaluationError(f"no such key: {field}") from None


def _if_present(run: Evaluation, value: Any, key: Any) -> OptionalValue:
    if isinstance(value, OptionalValue):
        if not value.present:
            return NONE
        value = value.value
    if isinstance(value, dict) and isinstance(key, str | int):
        if key not in value:
            return NONE
        run.cost += 1
        return OptionalValue(present=True, value=value[key])
    if isinstance(value, list) and _is_position(key):
        if not 0 <= key < len(value):
            return NONE
        run.cost += 1
        return OptionalValue(present=True, value=value[int(key)])
    raise EvaluationError(f"type '{type_name(value)}' does not support optional selection")


def _index(node: Index, operand: Compiled, index: Compiled) -> Compiled:
    optional = node.optional
    # An index that is itself a path is a step of this one: it was counted when it was looked up.
    cost = _steps(node.operand) - isinstance(node.index, IdentExpr | Select | Index)

    def entry(run: Evaluation) -> Any:
        value, key = operand(run), index(run)
        if isinstance(key, str | bytes):
            run.work += len(key) // BYTES_FOR_WORK
        if optional or isinstance(value, OptionalValue):
            return _if_present(run, value, key)
        run.cost += cost
        return _entry(value, key)

    return entry


def _entry(value: Any, key: Any) -> Any:
    if isinstance(value, dict):
        try:
            return value[key]
        except (KeyError, TypeError):
            name = key if isinstance(key, str | int) else type_name(key)
            raise EvaluationError(f"no such key: {name}") from None
    if isinstance(value, list) and _is_position(key):
        if not 0 <= key < len(value):
            raise EvaluationError(f"index out of bounds: {key}")
        return value[int(key)]
    raise EvaluationError(f"no such overload: {type_name(value)}[{type_name(key)}]")


def _is_position(key: Any) -> bool:
    return is_number(key) and (isinstance(key, int) or key.is_integer())


def _call(node: CallExpr, scope: Scope) -> Compiling:
    if node.target is not None:
        return (yield from _method(node, node.target, scope))
    if node.function == "has":
        return (yield from _has(node, scope))
    arguments = yield from each(node.arguments, scope)
    if node.function in ("&&", "||"):
        return _lazy(arguments, decided=node.function == "||")
    if node.function == "_?_:_":
        return _ternary(node, arguments)
    if node.function in OPERATORS:
        return _operator(node, arguments)
    return _function(node, arguments)


def _function(node: CallExpr, arguments: list[Compiled]) -> Compiled:
    function = FUNCTIONS.get(node.function)
    if function is None:
        raise SyntaxProblemError(f"undeclared reference to '{node.function}'")
    call = _applied(node.function, function, _cost(node.function), arguments)
    converts = node.function in _CONVERSIONS and all(isinstance(a, Literal) for a in node.arguments)
    return _folded(call) if converts else call


_CONVERSIONS = frozenset({"bool", "bytes", "double", "duration", "dyn", "int", "string", "uint"})


def _cost(name: str) -> Charge:
    return FUNCTION_COSTS.get(name, one)


def _operator(node: CallExpr, arguments: list[Compiled]) -> Compiled:
    if node.function == "in" and isinstance(node.arguments[1], Listing) and _is_constant(node.arguments[1]):
        container = arguments[1](Evaluation({}, 0, COST_LIMIT))
        if all(isinstance(element, str | int | float) for element in container):
            return _member_of(arguments[0], container)
    charge = operator_charge(node.function, typed=any(map(_is_typed, node.arguments)))
    return _applied(node.function, OPERATORS[node.function], charge, arguments)


def _is_typed(node: Node) -> bool:
    """Whether the type of the node's value is known without evaluating it: cel-go then knows the overload."""
    match node:
        case Literal() | Listing() | Mapped():
            return True
        case CallExpr(function, None, arguments):
            return (function in FUNCTIONS and function != "dyn") or any(map(_is_typed, arguments))
        case CallExpr(function, _, _):
            return function in METHODS and function not in ("value", "orValue", "min", "max", "sum", "or")
    return False


def _member_of(value: Compiled, constants: list[Any]) -> Compiled:
    """Membership in a list of constants, looked up in a set; cel-go counts it as nothing."""
    numbers = frozenset(c for c in constants if is_number(c))
    others = frozenset((type(c), c) for c in constants if not is_number(c))

    def member(run: Evaluation) -> bool:
        found = value(run)
        if is_number(found):
            return found in numbers
        return isinstance(found, str | bool) and (type(found), found) in others

    return member


def _applied(name: str, function: Callable[..., Any], charge: Charge, arguments: list[Compiled]) -> Compiled:
    metered = function in METERED

    def apply(run: Evaluation) -> Any:
        values = []
        for argument in arguments:
            values.append(argument(run))  # noqa: PERF401 - a comprehension takes a frame of its own
        try:
            charge(run, *values)
            return function(run, *values) if metered else function(*values)
        except _NO_OVERLOAD:
            kinds = ", ".join(type_name(value) for value in values)
            raise EvaluationError(f"no such overload: {name}({kinds})") from None

    return apply


def _lazy(arguments: list[Compiled], *, decided: bool) -> Compiled:
    """`&&` and `||`: a side that decides makes up for an error on another."""

    def evaluate(run: Evaluation) -> bool:
        failure: EvaluationError | None = None
        for argument in arguments:
            try:
                if truth(argument(run)) is decided:
                    return decided
            except EvaluationError as error:
                failure = failure or error
        if failure is not None:
            raise failure
        return not decided

    return evaluate


def _ternary(node: CallExpr, arguments: list[Compiled]) -> Compiled:
    condition, then, otherwise = arguments
    # A path becomes a part of the conditional: cel-go does not count its variable.
    saved_then, saved_otherwise = (int(_is_path(branch)) for branch in node.arguments[1:])

    def choose(run: Evaluation) -> Any:
        if truth(condition(run)):
            run.cost -= saved_then
            return then(run)
        run.cost -= saved_otherwise
        return otherwise(run)

    return choose


def _is_path(node: Node) -> bool:
    while isinstance(node, Select | Index):
        node = node.operand
    return isinstance(node, IdentExpr)


def _has(node: CallExpr, scope: Scope) -> Compiling:
    match node.arguments:
        case (Select(operand, field, _),):
            container = yield operand, scope
        case _:
            raise SyntaxProblemError("has() takes a field selection")
    # Kubernetes counts a presence test as nothing (PresenceTestHasCost).
    saved = int(_is_path(operand))

    def has(run: Evaluation) -> bool:
        value = container(run)
        run.cost -= saved
        if isinstance(value, OptionalValue):
            return _if_present(run, value, field).present
        if not isinstance(value, dict):
            raise EvaluationError(f"type '{type_name(value)}' does not support field selection")
        return field in value

    return has


def _method(node: CallExpr, target: Node, scope: Scope) -> Compiling:
    if isinstance(target, IdentExpr):
        if (target.name, node.function) == ("cel", "bind"):
            return (yield from bind(node, scope))
        full_name = f"{target.name}.{node.function}"
        function = NAMESPACED.get(full_name)
        if function is not None:
            arguments = yield from each(node.arguments, scope)
            return _applied(node.function, function, _cost(full_name), arguments)
    macro = MACROS.get((node.function, len(node.arguments)))
    if macro is not None:
        return (yield from macro((yield target, scope), node, scope))
    method = METHODS.get(node.function)
    if method is None:
        raise SyntaxProblemError(f"undeclared reference to '{node.function}'")
    arguments = yield from each((target, *node.arguments), scope)
    return _applied(node.function, method, _cost(node.function), arguments)
