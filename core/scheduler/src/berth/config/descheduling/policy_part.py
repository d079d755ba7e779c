"""The base of everything that a policy is made of."""

import msgspec


class PolicyPart(msgspec.Struct, rename="camel", forbid_unknown_fields=True, frozen=True, kw_only=True):
    """A part of the policy; a field that it does not have is refused."""
