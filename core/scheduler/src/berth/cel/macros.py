"""Macros: comprehensions and bindings, whose last arguments are evaluated with names of their own.

A comprehension counts, for each element, what cel-go's expansion of it costs: looking at the accumulator and
changing it. Each element also counts the nodes of what is evaluated for it as work, since most of them may be
of those that cost nothing.

Source: cel-go v0.26 parser/macro.go, ext/comprehensions.go, interpreter/runtimecost.go.
"""

from collections.abc import Callable, Generator, Iterable, Mapping
from typing import Any

from berth.cel.errors import EvaluationError, SyntaxProblemError
from berth.cel.metering import Evaluation
from berth.cel.operators import truth
from berth.cel.syntax import CallExpr, IdentExpr, Listing, Literal, Mapped, Node, count
from berth.cel.values import NONE, OptionalValue, type_name

Compiled = Callable[[Evaluation], Any]


class Scope:
    """Which slot each name is bound to that a macro binds around an expression."""

    __slots__ = ("_counter", "_names")

    def __init__(self) -> None:
        self._names: Mapping[str, int] = {}
        self._counter = [0]

    @property
    def slots(self) -> int:
        """How many slots the expression needs."""
        return self._counter[0]

    def slot(self, name: str) -> int | None:
        """Where the name's value is, None where no macro binds it."""
        return self._names.get(name)

    def with_names(self, names: Iterable[str]) -> tuple["Scope", list[int]]:
        """A scope in which these names are bound, and their slots."""
        inner = Scope()
        inner._counter = self._counter
        slots = []
        added = {}
        for name in names:
            added[name] = self._counter[0]
            slots.append(self._counter[0])
            self._counter[0] += 1
        inner._names = {**self._names, **added}
        return inner, slots


Compiling = Generator[tuple[Node, Scope], Compiled, Any]
"""Makes a closure: gives the nodes below that it needs, each with its scope, and is sent their closures."""

Macro = Callable[[Compiled, CallExpr, Scope], Compiling]


def each(nodes: Iterable[Node], scope: Scope) -> Compiling:
    """The closures of these nodes."""
    found = []
    for node in nodes:
        found.append((yield node, scope))  # noqa: PERF401 - no comprehension yields
    return found


# What an element costs beside the expressions that are evaluated for it.
_ALL = 3  # the accumulator, whether it is false yet, and the accumulator again
_EXISTS = 4  # the same, and its negation
_COUNTED = 2  # the accumulator and one more
_KEPT = 13  # the accumulator, a list of the element, the element, and both lists put together
_MADE = 12
_MADE_OF_A_CONSTANT = 2
_ELEMENT_WORK = 5
_RESULT = 1
_COUNTED_RESULT = 2


def optional_value(value: Any) -> OptionalValue:
    """The value, which has to be optional. Raises: EvaluationError."""
    if not isinstance(value, OptionalValue):
        raise EvaluationError(f"expected an optional value, got {type_name(value)}")
    return value


def bind(node: CallExpr, scope: Scope) -> Compiling:
    """`cel.bind(name, value, expression)`."""
    match node.arguments:
        case (IdentExpr(name), value, body):
            inner, (slot,) = scope.with_names([name])
            bound, result = (yield value, scope), (yield body, inner)
        case _:
            raise SyntaxProblemError("cel.bind() takes a name, a value and an expression")

    def evaluate(run: Evaluation) -> Any:
        run.slots[slot] = bound(run)
        return result(run)

    return evaluate


def _names(node: CallExpr, how_many: int) -> list[str]:
    names = [argument.name for argument in node.arguments[:how_many] if isinstance(argument, IdentExpr)]
    if len(names) != how_many:
        raise SyntaxProblemError(f"{node.function}() takes names first")
    return names


def _elements(value: Any, names: int) -> Iterable[Any]:
    """What there is to bind for each element: one value, or a pair."""
    if isinstance(value, dict):
        return list(value) if names == 1 else list(value.items())
    if isinstance(value, list):
        return value if names == 1 else enumerate(value)
    raise EvaluationError(f"no such overload: a comprehension over {type_name(value)}")


class _Loop:
    """What the comprehensions share: their names, and the expressions evaluated for each element."""

    __slots__ = ("bodies", "slots", "work")

    def __init__(self, slots: list[int], bodies: list[Compiled], work: int) -> None:
        self.slots = slots
        self.bodies = bodies
        self.work = work

    def bind(self, run: Evaluation, element: Any) -> None:
        """Let the expressions see the element."""
        if len(self.slots) == 1:
            run.slots[self.slots[0]] = element
        else:
            run.slots[self.slots[0]], run.slots[self.slots[1]] = element


def _loop(node: CallExpr, names: int, scope: Scope) -> Compiling:
    inner, slots = scope.with_names(_names(node, names))
    bodies = node.arguments[names:]
    return _Loop(slots, (yield from each(bodies, inner)), _ELEMENT_WORK + sum(map(count, bodies)))


def _quantified(names: int, *, decided: bool) -> Macro:
    """`all` and `exists`: an element that decides makes up for errors on others."""
    each = _EXISTS if decided else _ALL

    def macro(target: Compiled, node: CallExpr, scope: Scope) -> Compiling:
        loop = yield from _loop(node, names, scope)
        condition, work = loop.bodies[0], loop.work

        def evaluate(run: Evaluation) -> bool:
            failure: EvaluationError | None = None
            for element in _elements(target(run), names):
                run.spend(each, work)
                loop.bind(run, element)
                try:
                    if truth(condition(run)) is decided:
                        run.cost += _RESULT
                        return decided
                except EvaluationError as error:
                    failure = failure or error
            run.cost += _RESULT
            if failure is not None:
                raise failure
            return not decided

        return evaluate

    return macro


def _exactly_one(names: int) -> Macro:
    def macro(target: Compiled, node: CallExpr, scope: Scope) -> Compiling:
        loop = yield from _loop(node, names, scope)
        condition, work = loop.bodies[0], loop.work

        def evaluate(run: Evaluation) -> bool:
            found = 0
            for element in _elements(target(run), names):
                run.spend(0, work)
                loop.bind(run, element)
                if truth(condition(run)):
                    run.cost += _COUNTED
                    found += 1
            run.cost += _COUNTED_RESULT
            return found == 1

        return evaluate

    return macro


def _transformed(names: int, *, filtered: bool) -> Macro:
    def macro(target: Compiled, node: CallExpr, scope: Scope) -> Compiling:
        loop = yield from _loop(node, names, scope)
        condition = loop.bodies[0] if filtered else _always
        value, work = loop.bodies[-1], loop.work
        made = _MADE_OF_A_CONSTANT if isinstance(node.arguments[-1], _CONSTANTS) else _MADE

        def evaluate(run: Evaluation) -> list[Any]:
            found = []
            for element in _elements(target(run), names):
                run.spend(0, work)
                loop.bind(run, element)
                if truth(condition(run)):
                    run.spend(made)
                    found.append(value(run))
            run.cost += _RESULT
            return found

        return evaluate

    return macro


_CONSTANTS = (Literal, Listing, Mapped)


def _always(run: Evaluation) -> bool:
    del run
    return True


def _filter(target: Compiled, node: CallExpr, scope: Scope) -> Compiling:
    loop = yield from _loop(node, 1, scope)
    condition, work = loop.bodies[0], loop.work

    def evaluate(run: Evaluation) -> list[Any]:
        found = []
        for element in _elements(target(run), 1):
            run.spend(0, work)
            loop.bind(run, element)
            if truth(condition(run)):
                run.spend(_KEPT)
                found.append(element)
        run.cost += _RESULT
        return found

    return evaluate


def _opt_map(*, flat: bool) -> Macro:
    def macro(target: Compiled, node: CallExpr, scope: Scope) -> Compiling:
        loop = yield from _loop(node, 1, scope)
        value = loop.bodies[0]

        def evaluate(run: Evaluation) -> OptionalValue:
            held = optional_value(target(run))
            run.cost += 1
            if not held.present:
                return NONE
            loop.bind(run, held.value)
            found = value(run)
            return optional_value(found) if flat else OptionalValue(present=True, value=found)

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
