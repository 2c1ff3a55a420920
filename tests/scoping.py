"""The function that tells the suite which tenants a user may see, as a project would write it."""

from __future__ import annotations

#: Names of users -> what the function returns. Who is not among them may see nothing. Cleared after each test.
grants: dict[str, object] = {}


def tenants_of(user):
    """Return what the test has granted, raise it where it is an error."""
    granted = grants.get(user.get_username(), ())
    if isinstance(granted, Exception):
        raise granted
    return granted


async def wait_for_tenants(user):
    """Return what nobody awaits."""


SETTING = {"TENANT_SCOPE": "tests.scoping.tenants_of"}
