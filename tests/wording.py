"""Names and sentences drawn at random from a package, to be explained by a reader who has not seen the code.

    python -m tests.wording --seed 7

A reader who knows kube-scheduler has to be able to say what each means: one that needs its code, or a
glossary, to be understood is to be rewritten.
"""

import argparse
import ast
import random
import re
from pathlib import Path

import click

ROOT = Path(__file__).parents[1]
PACKAGES = (
    "core/scheduler/src/berth/evaluation",
    "core/scheduler/src/berth/out_of_tree",
    "core/simulation/src/berth/simulation",
)
SHORTEST = 25
"""Min characters of a sentence; shorter ones are most often the names of errors."""


def drawn_from(package: Path, rng: random.Random, names: int, sentences: int) -> list[str]:
    """That many functions and classes of the package and sentences of its docstrings, each with its place."""
    known, said = [], []
    for file in sorted(package.rglob("*.py")):
        where = file.relative_to(package)
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Module):
                said += [(where, each) for each in sentences_of(node)]
            elif isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                said += [(f"{where} {node.name}", each) for each in sentences_of(node)]
                if not node.name.startswith("__"):
                    known.append(f"{where} {node.name}")
    return [*rng.sample(known, names), *(f"{where}: {text}" for where, text in rng.sample(said, sentences))]


def sentences_of(node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    """The sentences of a docstring, without diagrams and sources."""
    text = ast.get_docstring(node) or ""
    prose = (part for part in text.split("\n\n") if not part.startswith((" ", "Source:", "Called by:")))
    split = (" ".join(each.split()) for part in prose for each in re.split(r"(?<=\.)\s+", part))
    return [each for each in split if len(each) >= SHORTEST]


def main() -> None:
    """Print a draw from each package."""
    parser = argparse.ArgumentParser(prog="python -m tests.wording", description=__doc__.split("\n\n")[0])
    parser.add_argument("packages", nargs="*", default=PACKAGES, help="folders; by default three of core")
    parser.add_argument("--seed", type=int, default=0, help="what the draw depends on")
    parser.add_argument("--names", type=int, default=6, help="how many names of each package")
    parser.add_argument("--sentences", type=int, default=10, help="how many sentences of each package")
    args = parser.parse_args()
    rng = random.Random(args.seed)
    for package in args.packages:
        click.echo(f"## {package}")
        click.echo("\n".join(drawn_from(ROOT / package, rng, args.names, args.sentences)))


if __name__ == "__main__":
    main()
