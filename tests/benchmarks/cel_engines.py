"""CEL's engines for Python: what a device selector costs, and what ends one that never would.

    python -m tests.benchmarks.cel_engines

Measured are those that are installed: Berth's own, cel-expr-python (`cel_expr_python`), cel-python (`celpy`).
"""

import json
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import click

Evaluate = Callable[[], Any]

SELECTOR = 'device.driver == "gpu.example.com" && device.attributes["model"] == "a100" && device.memory >= 40'
NESTED = "words.all(a, words.all(b, words.all(c, a + b + c != '')))"
DEVICE = {"driver": "gpu.example.com", "attributes": {"model": "a100"}, "memory": 80}
WORDS = [f"w{i}" for i in range(60)]
ROUNDS = 5
EVALUATIONS = 500


def own(text: str, variables: dict[str, Any]) -> Evaluate:
    """Berth's own, with the cost limit of a device selector."""
    program = import_module("berth.cel").program(text)
    return lambda: program(variables)


def expr(text: str, variables: dict[str, Any]) -> Evaluate:
    """cel-expr-python: cel-cpp behind bindings."""
    cel = import_module("cel_expr_python.cel")
    env = cel.NewEnv(variables=dict.fromkeys(variables, cel.Type.DYN))
    program = env.compile(text)
    return lambda: program.eval(data=variables).value()


def python(text: str, variables: dict[str, Any]) -> Evaluate:
    """cel-python: an interpreter in Python."""
    celpy = import_module("celpy")
    program = celpy.Environment().program(celpy.Environment().compile(text))
    given = {name: celpy.json_to_cel(value) for name, value in json.loads(json.dumps(variables)).items()}
    return lambda: program.evaluate(given)


def measured(evaluate: Evaluate) -> float:
    """CPU microseconds of an evaluation, the least of some rounds."""
    rounds = []
    for _ in range(ROUNDS):
        began = time.process_time()
        for _ in range(EVALUATIONS):
            evaluate()
        rounds.append((time.process_time() - began) / EVALUATIONS * 1e6)
    return min(rounds)


def ended(evaluate: Evaluate) -> str:
    """How long the nested loops take, and what ends them."""
    began = time.process_time()
    try:
        how = str(evaluate())
    except Exception as error:  # noqa: BLE001 - each engine has errors of its own
        how = f"{type(error).__name__}: {str(error)[:60]}"
    return f"{time.process_time() - began:.2f} s, {how}"


def rows() -> Iterator[str]:
    """A line for each engine."""
    for name, engine in (("berth.cel", own), ("cel-expr-python", expr), ("cel-python", python)):
        try:
            selector = measured(engine(SELECTOR, {"device": DEVICE}))
            nested = ended(engine(NESTED, {"words": WORDS}))
        except ModuleNotFoundError as error:
            yield f"{name:18} not installed ({error.name})"
            continue
        yield f"{name:18} {selector:8.1f} µs a selector; {len(WORDS)} words, three loops deep: {nested}"


def main() -> None:
    """Print a line for each engine."""
    for row in rows():
        click.echo(row)


if __name__ == "__main__":
    main()
