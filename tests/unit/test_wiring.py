"""Parts get what they call from their constructors: none is hooked into another afterwards."""

import ast

import pytest

from tests import sources

ITSELF = ("self", "cls")
PROPERTIES = frozenset({"property", "cached_property"})


def modules():
    """Every module of ours, by its path, as a syntax tree."""
    return {name: ast.parse(path.read_text()) for name, path in sources.modules().items()}


def called(trees, nodes):
    """The names of attributes that are declared to be callable, in a class body or on `self`."""
    aliases = {"Callable"}
    for tree in trees:
        for statement in tree.body:
            if isinstance(statement, ast.Assign) and mentions(statement.value, {"Callable"}):
                aliases |= {target.id for target in statement.targets if isinstance(target, ast.Name)}
    return {name for name, annotation in declared(nodes) if mentions(annotation, aliases)}


def declared(nodes):
    """The attributes that are declared in a class body or on `self`, each with its type."""
    for node in nodes:
        match node:
            case ast.ClassDef(body=body):
                fields = [each for each in body if isinstance(each, ast.AnnAssign)]
                yield from ((each.target.id, each.annotation) for each in fields)
            case ast.AnnAssign(target=ast.Attribute(attr=name), annotation=annotation):
                yield name, annotation


def mentions(expression, names):
    """Whether the type, or one of a union, is one of these: what a container holds does not count."""
    match expression:
        case ast.BinOp(left=left, right=right):
            return mentions(left, names) or mentions(right, names)
        case ast.Subscript(value=value):
            return mentions(value, names)
        case ast.Name(id=name):
            return name in names
    return False


def methods(nodes):
    """The names that are methods wherever they are defined, and never values."""
    members = [member for node in nodes if isinstance(node, ast.ClassDef) for member in node.body]
    defined = [member for member in members if isinstance(member, (ast.FunctionDef, ast.AsyncFunctionDef))]
    properties = {each.name for each in defined if any(mentions(d, PROPERTIES) for d in each.decorator_list)}
    fields = {each.target.id for each in members if isinstance(each, ast.AnnAssign)}
    written = {each.attr for each in nodes if isinstance(each, ast.Attribute) and is_written(each)}
    return {each.name for each in defined} - properties - fields - written


def is_written(attribute):
    """Whether it is assigned to by its own object."""
    owner = attribute.value
    return isinstance(attribute.ctx, ast.Store) and isinstance(owner, ast.Name) and owner.id in ITSELF


def hooks(nodes, callables, functions):
    """Assignments of something to be called to an attribute of another object."""
    for node in nodes:
        if not isinstance(node, ast.Assign):
            continue
        for target in node.targets:
            outside = isinstance(target, ast.Attribute) and not (
                isinstance(target.value, ast.Name) and target.value.id in ITSELF
            )
            if outside and (target.attr in callables or is_callable(node.value, functions)):
                yield f"{node.lineno}: {ast.unparse(node)}"


def is_callable(value, functions):
    """Whether the value is a lambda, a partial call, or a method of some object."""
    match value:
        case ast.Lambda() | ast.Call(func=ast.Name(id="partial")):
            return True
        case ast.Attribute(attr=name):
            return name in functions
    return False


def found_in(sources):
    """The hooks of these modules, each with its module."""
    walked = {name: list(ast.walk(tree)) for name, tree in sources.items()}
    nodes = [node for each in walked.values() for node in each]
    callables, functions = called(sources.values(), nodes), methods(nodes)
    return [f"{name}:{hook}" for name, each in walked.items() for hook in hooks(each, callables, functions)]


def test_no_part_is_hooked_into_another():
    """An object's callables are set by its own class: its constructor takes them, or a list of followers."""
    assert [] == found_in(modules())


@pytest.mark.parametrize(
    ("source", "is_hook"),
    [
        pytest.param("queue.on_ready = lambda: None", True, id="a lambda"),
        pytest.param("queue.on_ready = partial(tell, 1)", True, id="a partial call"),
        pytest.param("class A:\n def wake(self): ...\nqueue.on_ready = a.wake", True, id="a method"),
        pytest.param(
            "class A:\n def __init__(self, b, c):\n  self.f: Callable[[], None] | None = c\n  b.f = c",
            True,
            id="what is declared to be callable",
        ),
        pytest.param(
            "class A:\n def __init__(self, f: Callable[[], None]):\n  self.f = f", False, id="a constructor"
        ),
        pytest.param("queue.followers.append(wake)", False, id="a list of followers"),
        pytest.param("record.attempts = 1", False, id="a value"),
    ],
)
def test_what_counts_as_a_hook(source, is_hook):
    """The check sees the ways in which a hook is written, and nothing else."""
    assert is_hook == bool(found_in({"module": ast.parse(source)}))
