"""Trees of files, and the archives that are made of them."""

import io
import tarfile

import pytest

from berth_images.tree import EPOCH, File, Folder, Symlink, Tree


def tree(*names):
    made = Tree()
    for name in names:
        made.add(name, File(name.encode()))
    return made


def members(of):
    """The members of a tree's archive, as they are read back."""
    with tarfile.open(fileobj=io.BytesIO(archive(of))) as read:
        return read.getmembers()


def archive(of):
    made = io.BytesIO()
    of.write_archive(made)
    return made.getvalue()


def test_equal_trees_have_equal_archives():
    """The order in which entries were added leaves no trace."""
    assert archive(tree("a/b", "c")) == archive(tree("c", "a/b"))


def test_an_entry_has_one_owner_and_one_time():
    """Nothing of the machine that wrote an archive is in it."""
    assert [("a", 0, 0, "", EPOCH), ("a/b", 0, 0, "", EPOCH)] == [
        (each.name, each.uid, each.gid, each.uname, each.mtime) for each in members(tree("a/b"))
    ]


def test_a_long_name_is_kept():
    """A name beyond what the old header has room for is read back whole."""
    name = "/".join(["folder" * 10] * 5)

    assert name == members(tree(name))[-1].name


@pytest.mark.parametrize("name", ["../x", "a/../../x", "", "/"])
def test_a_name_outside_of_the_root_is_refused(name):
    """No entry leads out of the tree."""
    with pytest.raises(ValueError, match="is not a name below the root"):
        Tree().add(name, File(b""))


def test_a_folder_keeps_its_mode_when_contents_follow():
    """What is added below a folder does not make the folder anew."""
    made = Tree()
    made.add("tmp", Folder(0o1777))
    made.add("tmp/x", File(b""))

    assert Folder(0o1777) == made["tmp"]


def test_a_tree_is_written_to_a_folder(tmp_path):
    """Files, modes and links are as the tree has them."""
    made = Tree()
    made.add("bin/run", File(b"#!", 0o755))
    made.add("run", Symlink("bin/run"))

    made.write_folder(tmp_path)

    assert (b"#!", 0o755) == ((tmp_path / "run").read_bytes(), (tmp_path / "bin/run").stat().st_mode & 0o777)
