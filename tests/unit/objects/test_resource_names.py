"""Which names are extended resources: those that upstream's check of a qualified name lets pass."""

from hypothesis import given
from hypothesis import strategies as st

from berth.objects.label_selector import is_qualified_name
from berth.objects.resource_names import is_extended

PARTS = st.text("ab-._A0", max_size=4)
LONG = st.sampled_from(("a" * 63, "a" * 64, "a" * 244, "a" * 245))
PREFIXES = st.one_of(
    PARTS, LONG, st.sampled_from(("requests.a", "kubernetes.io", "x.kubernetes.io", "requests"))
)
NAMES = st.builds("/".join, st.lists(st.one_of(PREFIXES, PARTS, LONG), min_size=1, max_size=3))


@given(NAMES)
def test_an_extended_resource_is_a_qualified_name_of_another_domain(name):
    """Source: pkg/apis/core/v1/helper/helpers.go IsExtendedResourceName (Kubernetes v1.36)."""
    native = "/" not in name or "kubernetes.io/" in name
    other = not native and not name.startswith("requests.")

    assert is_extended(name) == (other and is_qualified_name(f"requests.{name}"))
