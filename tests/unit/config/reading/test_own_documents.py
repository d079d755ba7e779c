"""Documents of our group behind a configuration: each is read or refused, never passed over."""

import pytest

from berth.config.errors import DecodeError
from berth.config.reading.own_documents import PLUGIN_LIST, SHARD_LIST, own_document
from tests.unit.config.files import file

HEAD = "---\napiVersion: berth.dev/v1alpha1\n"


def test_the_document_of_a_kind():
    """Other kinds of our group and documents of other groups may stand before it."""
    text = f"{file()}---\nkind: ShardList\n{HEAD}kind: PluginList\n{HEAD}kind: ShardList\nshards: []\n"

    assert [] == own_document(text, SHARD_LIST).last("shards")
    assert own_document(text, PLUGIN_LIST).last("plugins") is None


@pytest.mark.parametrize(
    ("rest", "error"),
    [
        pytest.param(f"{HEAD}kind: Shardlist\n", "kind: must be PluginList or ShardList", id="misspelt"),
        pytest.param(HEAD, "kind: must be PluginList or ShardList", id="no kind"),
        pytest.param(f"{HEAD}kind: [ShardList]\n", "kind: must be PluginList or ShardList", id="a list"),
        pytest.param("---\napiVersion: berth.dev/v2\nkind: ShardList\n", "apiVersion: must be", id="version"),
        pytest.param(2 * f"{HEAD}kind: ShardList\n", "2 documents of kind ShardList", id="two"),
        pytest.param(f"{HEAD}kind: ShardList\nkind: PluginList\n", "", id="a field twice"),
    ],
)
def test_what_is_meant_for_us_is_not_passed_over(rest, error):
    with pytest.raises(DecodeError) as raised:
        own_document(file() + rest, SHARD_LIST)

    assert str(raised.value).startswith(error)
