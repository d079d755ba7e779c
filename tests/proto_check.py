"""Hold the protocols to their rules: lint, format, no breaking change, stubs and field numbers as committed.

`python -m tests.proto_check` checks. With `--write` it formats the .proto files and regenerates the stubs;
with `--release` it also makes today's contract the one that later changes are compared with.
"""

import argparse
import filecmp
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import grpc_tools
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from grpc_tools import protoc

from tests import node_toolchain, protobuf_fields, rust_toolchain
from tests.go_toolchain import run_go

ROOT = Path(__file__).resolve().parent.parent
PROTO = ROOT / "proto"
BASELINE = PROTO / "released.binpb"
BIN = Path(sys.executable).parent
PYTHON_COPIES = {
    "berth/plugin/v1": ROOT / "proto/python/src/berth_plugin_proto",
    "berth/simulation/v1": ROOT / "proto/python/src/berth_simulation_proto",
    "grpcplugin": ROOT / "proto/python/src/berth_expander_proto",
}
"""A flat package for each folder of .proto files; in other languages there is the plugin protocol alone."""
PLUGIN = "berth/plugin/v1"
GO_COPY = ROOT / "plugin-sdk/go/internal/pluginv1"
GO_TOOLS = ROOT / "plugin-sdk/go/tools"
GO_PACKAGE = "berth.dev/plugin-sdk/go/internal/pluginv1"
GO_GENERATORS = ("protoc-gen-go", "protoc-gen-go-grpc")
TYPESCRIPT_COPY = node_toolchain.NODE_SDK / "src/generated"
RUST_COPY = rust_toolchain.RUST_SDK / "src/generated"
HEADER = '"""Generated from proto/{folder} by `make proto`; never edited."""\n'


def main(argv: list[str] | None = None) -> int:
    """Check or rewrite; the number of problems is the exit code's truth value."""
    parser = argparse.ArgumentParser(prog="python -m tests.proto_check", description=__doc__)
    parser.add_argument("--write", action="store_true", help="format and regenerate instead of checking")
    parser.add_argument("--release", action="store_true", help="accept today's contract as the released one")
    options = parser.parse_args(argv)
    problems = write(release=options.release) if options.write or options.release else check()
    for problem in problems:
        sys.stderr.write(f"proto_check: {problem}\n")
    return 1 if problems else 0


def check() -> list[str]:
    """Return what is wrong, one sentence each."""
    problems = [
        *buf("lint", failed="the .proto files break lint rules"),
        *buf("format", "--diff", "--exit-code", failed="the .proto files are not formatted: make proto"),
        *buf("breaking", "--against", str(BASELINE), failed="the change breaks the released contract"),
        *additions(BASELINE.read_bytes(), descriptors()),
    ]
    if protobuf_fields.FILE.read_text() != protobuf_fields.generated():
        problems.append(f"{protobuf_fields.FILE.relative_to(ROOT)} is not what its sources say: make proto")
    with tempfile.TemporaryDirectory() as folder:
        for source, copy in PYTHON_COPIES.items():
            problems += differences(generate(source, Path(folder) / copy.name), copy)
        problems += differences(generate_go(Path(folder) / "pluginv1"), GO_COPY)
        typescript = node_toolchain.generate(Path(folder) / "generated", compile_with)
        problems += differences(typescript, TYPESCRIPT_COPY)
        if rust_toolchain.CARGO:
            problems += differences(rust_toolchain.generate(Path(folder) / "rust", compile_with), RUST_COPY)
    return problems


def additions(released: bytes, today: bytes) -> list[str]:
    """What was added where a plugin that is written without an SDK has to name everything there is."""
    return [
        *added_calls(services(released), services(today)),
        *added_variants(received_oneofs(released), received_oneofs(today)),
    ]


def added_calls(released: Mapping[str, set[str]], today: Mapping[str, set[str]]) -> list[str]:
    """Calls that services of the released contract have gained.

    A plugin that implements a service straight on a gRPC library, without an SDK, has to have each of its
    calls: in some languages it no longer compiles without a new one. A new extension point is a service.
    """
    return [
        f"{service}.{call}: a call that is added to a released service breaks plugins that implement it "
        "without an SDK; give it a service of its own"
        for service, calls in sorted(released.items())
        for call in sorted(today.get(service, set()) - calls)
    ]


def added_variants(released: Mapping[str, set[str]], today: Mapping[str, set[str]]) -> list[str]:
    """Variants that oneofs of the released contract have gained, of those that plugins receive.

    A match over such a oneof that is exhaustive, as Rust's are, no longer compiles with one more.
    """
    return [
        f"{oneof}.{variant}: a variant that is added to a released oneof breaks plugins that match on all of "
        "them; give it a message or a service of its own"
        for oneof, variants in sorted(released.items())
        for variant in sorted(today.get(oneof, set()) - variants)
    ]


def received_oneofs(descriptors: bytes) -> dict[str, set[str]]:
    """The variants of each oneof that may stand in a request, in an encoded FileDescriptorSet."""
    files = FileDescriptorSet.FromString(descriptors).file
    messages = {f".{file.package}.{each.name}": each for file in files for each in file.message_type}
    open_ends = [method.input_type for file in files for service in file.service for method in service.method]
    found: dict[str, set[str]] = {}
    seen: set[str] = set()
    while open_ends:
        name = open_ends.pop()
        if name in seen or name not in messages:
            continue
        seen.add(name)
        for field in messages[name].field:
            open_ends.append(field.type_name)
            if field.HasField("oneof_index") and not field.proto3_optional:
                oneof = messages[name].oneof_decl[field.oneof_index].name
                found.setdefault(f"{name[1:]}.{oneof}", set()).add(field.name)
    return found


def services(descriptors: bytes) -> dict[str, set[str]]:
    """The calls of each service in an encoded FileDescriptorSet."""
    files = FileDescriptorSet.FromString(descriptors).file
    return {
        f"{file.package}.{service.name}": {method.name for method in service.method}
        for file in files
        for service in file.service
    }


def descriptors() -> bytes:
    """Today's .proto files as an encoded FileDescriptorSet."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "today.binpb"
        compile_with(f"--descriptor_set_out={target}")
        return target.read_bytes()


def write(*, release: bool) -> list[str]:
    """Format, regenerate all copies, and on request move the baseline."""
    problems = buf("format", "--write", failed="buf format failed")
    protobuf_fields.FILE.write_text(protobuf_fields.generated())
    if release:
        build = ("build", "--exclude-source-info", "--output", str(BASELINE))
        problems += buf(*build, failed="buf build failed")
    with tempfile.TemporaryDirectory() as folder:
        stubs = {copy: generate(source, Path(folder) / copy.name) for source, copy in PYTHON_COPIES.items()}
        stubs[GO_COPY] = generate_go(Path(folder) / "pluginv1")
        stubs[TYPESCRIPT_COPY] = node_toolchain.generate(Path(folder) / "generated", compile_with)
        if rust_toolchain.CARGO:
            stubs[RUST_COPY] = rust_toolchain.generate(Path(folder) / "rust", compile_with)
        else:
            problems.append(f"{RUST_COPY.relative_to(ROOT)} is left as it was: cargo is not on this machine")
        for copy, made in stubs.items():
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(made, copy)
    return problems


def buf(*arguments: str, failed: str) -> list[str]:
    """Run buf on the module; `failed` is the problem when it exits with an error."""
    done = subprocess.run([BIN / "buf", *arguments], cwd=PROTO, check=False)
    return [failed] if done.returncode else []


def generate(source: str, folder: Path) -> Path:
    """Write stubs with type hints into a flat package that imports its modules relatively.

    The folders of the proto path, such as berth/plugin/v1, must not come to stand beside the Python package
    berth.
    """
    raw = folder.parent / f"{folder.name}_raw"
    raw.mkdir()
    compile_with(
        *(f"--plugin={name}={BIN / name}" for name in ("protoc-gen-mypy", "protoc-gen-mypy_grpc")),
        *(f"--{kind}_out=quiet:{raw}" for kind in ("mypy", "mypy_grpc")),
        *(f"--{kind}_out={raw}" for kind in ("python", "grpc_python")),
        source=source,
    )
    folder.mkdir()
    (folder / "__init__.py").write_text(HEADER.format(folder=source))
    (folder / "py.typed").touch()
    for file in proto_files(source):
        flatten(raw, file, folder)
    return folder


def generate_go(folder: Path) -> Path:
    """Write one Go package; the generators are Go tools, pinned in a module of their own."""
    tools = folder.parent / "go_tools"
    if run_go("install", "tool", folder=GO_TOOLS, GOBIN=str(tools)).returncode:
        sys.exit("proto_check: the Go generators can't be built")
    folder.mkdir()
    mapped = [f"M{source}={GO_PACKAGE}" for source in proto_files()]
    settings = ",".join(["module=" + GO_PACKAGE, *mapped])
    compile_with(
        *(f"--plugin={name}={tools / name}" for name in GO_GENERATORS),
        f"--go_out={settings}:{folder}",
        f"--go-grpc_out={settings}:{folder}",
    )
    return folder


def compile_with(*outputs: str, source: str = PLUGIN) -> None:
    """Run protoc on every .proto file of a folder; what is not right ends the program."""
    well_known = Path(grpc_tools.__file__).parent / "_proto"
    if protoc.main(["protoc", f"-I{PROTO}", f"-I{well_known}", *outputs, *proto_files(source)]):
        sys.exit("proto_check: protoc failed")


def proto_files(source: str = PLUGIN) -> list[str]:
    """Every .proto file of a folder by its import path."""
    return sorted(str(path.relative_to(PROTO)) for path in (PROTO / source).glob("*.proto"))


def flatten(raw: Path, file: str, folder: Path) -> None:
    """Move one .proto file's modules; a file without services has no gRPC module worth keeping."""
    package = str(Path(file).parent).replace("/", ".")
    has_service = "\nservice " in (PROTO / file).read_text()
    for kind in ("_pb2", "_pb2_grpc") if has_service else ("_pb2",):
        for suffix in (".py", ".pyi"):
            module = (raw / file).with_name(Path(file).stem + kind + suffix)
            text = module.read_text().replace(f"\nfrom {package} import ", "\nfrom . import ")
            (folder / module.name).write_text(text)


def differences(fresh: Path, copy: Path) -> list[str]:
    """Return a sentence if the committed copy is not what the .proto files give."""
    names, held = files_in(fresh), files_in(copy)
    same = names == held and not any(filecmp.cmpfiles(fresh, copy, names, shallow=False)[1:])
    return [] if same else [f"{copy.relative_to(ROOT)} is stale: make proto"]


def files_in(folder: Path) -> list[str]:
    """Every file below a folder by its path there, compiled Python left out."""
    found = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return sorted(str(path) for path in found if "__pycache__" not in path.parts)


if __name__ == "__main__":
    sys.exit(main())
