"""A mirror's objects: found by name, and kept without a second copy of what they say themselves."""

import tracemalloc

from berth.client.watching.known_objects import KnownObjects
from berth.client.wire import Meta, ObjectKey
from berth.objects.api_object import ObjectMeta, TypedObject

MANY = 2_000


def typed(name, version="1", namespace="ns"):
    uid = f"7d9c1f3a-52b1-4c0e-9d8f-{name:0>12}"
    return TypedObject(metadata=ObjectMeta(name, namespace, uid, version))


def meta_of(obj):
    own = obj.metadata
    return Meta(*("".join(list(each)) for each in (own.name, own.namespace, own.uid, own.resource_version)))


def test_an_object_is_found_by_its_name():
    known = KnownObjects()
    known.put(meta_of(typed("a")), typed("a"))

    assert known.get(ObjectKey("ns", "a")).obj == typed("a")
    assert known.get(ObjectKey("other", "a")) is None
    assert ObjectKey("ns", "a") in known
    assert list(known) == [ObjectKey("ns", "a")]


def test_another_version_takes_the_place_of_the_one_before():
    known = KnownObjects()
    for version in ("1", "2"):
        known.put(meta_of(typed("a", version)), typed("a", version))

    assert [each.metadata.resource_version for each in known.objects()] == ["2"]
    assert len(known) == 1


def test_what_is_taken_out_is_gone():
    known = KnownObjects()
    known.put(meta_of(typed("a")), typed("a"))

    assert known.pop(ObjectKey("ns", "a")) == typed("a")
    assert (len(known), list(known), known.get(ObjectKey("ns", "a"))) == (0, [], None)


def test_an_object_without_metadata_of_its_own_is_kept_with_it():
    known = KnownObjects()
    known.put(Meta("a", "ns", "uid-a", "7"), {"kind": "Pod"})

    found = known.get(ObjectKey("ns", "a"))
    assert found.obj == {"kind": "Pod"}
    assert found.is_version(Meta("a", "ns", "uid-a", "7"))
    assert not found.is_version(Meta("a", "ns", "uid-a", "8"))


def test_an_object_that_says_something_else_of_itself_is_kept_with_what_the_server_said():
    known = KnownObjects()
    said = Meta("a", "ns", "uid-a", "7")
    known.put(said, typed("a", version=""))

    assert known.get(ObjectKey("ns", "a")).is_version(said)


def test_identities_take_no_memory_beside_the_objects():
    """A place in a table is all that an object costs here, after updates as well."""
    known = KnownObjects()
    versions = [[typed(str(i), version) for i in range(MANY)] for version in ("1", "2")]
    for each in versions[0]:
        known.put(meta_of(each), each)

    tracemalloc.start()
    for each in versions[1]:
        known.put(meta_of(each), each)
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert taken < 100 * MANY
