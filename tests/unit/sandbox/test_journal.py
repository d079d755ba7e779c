"""What a sandbox keeps in its data file."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.sandbox import SandboxError, SandboxOptions, serve
from berth.sandbox.journal import StoreJournal
from berth.sandbox.store import Compacted, SandboxStore
from tests.unit.sandbox.test_store import WRITES, write


def contents(store):
    """Everything in the store, and where its numbering stands."""
    held = {c.name: {e.key: (e.revision, e.body) for e in c.entries()} for c in store.collections()}
    return store.revision, {name: found for name, found in held.items() if found}


@given(first=WRITES, second=WRITES, torn=st.booleans())
def test_what_was_written_is_there_again(tmp_path_factory, first, second, torn):
    """After any writes, and more after a restart, another restart finds them; a torn line is dropped."""
    path = tmp_path_factory.mktemp("journal") / "data"
    stores = []
    for writes in (first, second):
        store = SandboxStore()
        journal = StoreJournal.open(path, store)
        write(store.collection("things"), writes)
        stores.append(contents(store))
        journal.close()
        if torn:
            with path.open("ab") as file:
                file.write(b"99\tthings\ta/x\t{")
    found = SandboxStore()
    StoreJournal.open(path, found).close()

    assert stores[1] == contents(found)


def test_watches_from_before_list_again(tmp_path):
    """A restarted server knows the objects, and nothing of how they came to be."""
    store = SandboxStore()
    journal = StoreJournal.open(tmp_path / "data", store)
    write(store.collection("things"), [("put", "a/x"), ("put", "a/y")])
    journal.close()
    again = SandboxStore()
    StoreJournal.open(tmp_path / "data", again).close()
    things = again.collection("things")

    assert 0 == things.position_after(again.revision)
    with pytest.raises(Compacted):
        things.position_after(again.revision - 1)
    with pytest.raises(Compacted):
        again.collection("others").position_after(again.revision - 1)


def test_another_file(tmp_path):
    """A file that holds something else is left alone, and named."""
    path = tmp_path / "data"
    path.write_text("kind: Node\n")
    with pytest.raises(SandboxError, match=r"data, line 1: not a sandbox's data"):
        StoreJournal.open(path, SandboxStore())

    assert "kind: Node\n" == path.read_text()


async def test_a_sandbox_goes_on(tmp_path):
    """Objects, custom resources and the numbering outlive the server."""
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "gpus.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"plural": "gpus", "kind": "Gpu"},
            "scope": "Cluster",
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object"}},
                }
            ],
        },
    }
    gpu = {"apiVersion": "example.com/v1", "kind": "Gpu", "metadata": {"name": "g"}}
    options = SandboxOptions(kubelets=False, data_file=tmp_path / "data")
    async with await serve(options) as sandbox:
        sandbox.load([definition, gpu])
        before = contents(sandbox.store)
    async with await serve(options) as sandbox:
        assert before == contents(sandbox.store)
        assert sandbox.api.catalogue.by_kind("example.com/v1", "Gpu")
