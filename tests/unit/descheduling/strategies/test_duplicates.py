"""Pods of one owner and the same images share a node no more than they have to."""

from tests.unit.descheduling.kit import moves, node, planned, policy, running

EVENLY = policy("RemoveDuplicates")


def test_duplicates_go_where_fewer_are(tmp_path):
    """They leave until no node has two more of them than another that would take one."""
    documents = [node(f"n{i}") for i in range(3)], [running(f"p{i}", "n0") for i in range(4)]

    found = planned(tmp_path, EVENLY, *documents[0], *documents[1])

    targets = [to for _, _, to in moves(found)]
    assert ["n1", "n2"] == sorted(targets)


def test_other_owners_and_images_are_no_duplicates(tmp_path):
    """Pods of different owners, or of other images, may stand together."""
    other = running("c", "n0")
    other["spec"]["containers"][0]["image"] = "other"

    pods = running("a", "n0", owner="x"), running("b", "n0", owner="y"), other

    assert [] == moves(planned(tmp_path, EVENLY, node("n0"), node("n1"), *pods))


def test_kinds_of_owners_that_are_left_out(tmp_path):
    """Pods of excluded kinds of owners may stand together."""
    excluding = policy(("RemoveDuplicates", {"excludeOwnerKinds": ["ReplicaSet"]}))
    pods = [running(f"p{i}", "n0") for i in range(2)]

    assert [] == moves(planned(tmp_path, excluding, node("n0"), node("n1"), *pods))
