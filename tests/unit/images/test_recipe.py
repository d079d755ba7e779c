"""Recipes: what they say, and what is wrong with them."""

import pytest

from berth_images.errors import ImageError
from berth_images.recipe import read
from tests.go_toolchain import ROOT
from tests.release.images import RECIPES

GOOD = 'name = "a.example.com/b/hello"\ntitle = "hello"\nbase = "static"\nentrypoint = ["/plugin"]\n'


def test_a_layout_has_the_last_part_of_the_name(tmp_path):
    """Registry and path are no part of the folder's name."""
    path = tmp_path / "image.toml"
    path.write_text(GOOD)

    assert "hello" == read(path).short_name


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (GOOD.replace('title = "hello"\n', ""), "missing required field `title`"),
        (f"{GOOD}user = 0\n", "unknown field `user`"),
        (GOOD.replace('["/plugin"]', "3"), r"\$.entrypoint"),
        (GOOD.replace('["/plugin"]', "[]"), "`entrypoint` names no program"),
        (f'{GOOD}lock = "pylock.toml"\n', '`lock` needs `base = "python"`'),
        ("name =", "image.toml: "),
        *(
            (GOOD.replace("a.example.com/b/hello", name), f"`name` '{name}': use lower case")
            for name in ("", "..", "hello/", "b/..", "hello:1", "Hello", "b//hello")
        ),
        *(
            (
                f'{GOOD}files = [{{source = "plugin", target = "{target}"}}]\n',
                f"`target` '{target}': use an absolute",
            )
            for target in ("", "/", "plugin", "/../plugin", "/usr/..")
        ),
    ],
)
def test_an_error_names_the_file_and_the_field(tmp_path, text, complaint):
    """A recipe that is not understood is an error that says where."""
    path = tmp_path / "image.toml"
    path.write_text(text)

    with pytest.raises(ImageError, match=f"image.toml: .*{complaint}|{complaint}"):
        read(path)


def test_a_recipe_that_is_absent_is_named(tmp_path):
    """The error names the file."""
    with pytest.raises(ImageError, match=r"image.toml: No such file"):
        read(tmp_path / "image.toml")


@pytest.mark.parametrize("path", [*RECIPES.values(), *ROOT.glob("plugin-sdk/*/template/image.toml")], ids=str)
def test_recipes_of_this_repository_are_read(path):
    """Each names an image of Berth's."""
    assert read(path).name.startswith("berth/")
