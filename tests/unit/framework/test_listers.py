"""The objects that plugins look things up in."""

import pytest

from berth.framework.mirrors.listers import Listers
from berth.objects.pod_groups import PodGroup
from berth.objects.workloads import Namespace


@pytest.mark.parametrize(
    ("plural", "obj"),
    [
        pytest.param("namespaces", Namespace(), id="a kind that is always watched"),
        pytest.param("pod_groups", PodGroup(), id="another one"),
        pytest.param("", Namespace(), id="a kind that only some plugins need"),
    ],
)
def test_the_generation_grows_with_each_change(plural, obj):
    """Whichever store it is in, and whether an object comes or goes."""
    listers = Listers()
    store = getattr(listers, plural) if plural else listers.store("widgets")
    generations = [listers.generation]
    for change in (store.put, store.remove):
        change(obj)
        generations.append(listers.generation)

    assert generations == sorted(set(generations))
