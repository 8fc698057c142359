"""What becomes of a write of the admin API that somebody else came before (resource-groups 4)."""

from headgate.core.quota.admin.api import AdminParameters, Presence, after_conflict, decide
from headgate.core.quota.admin.request import Request
from headgate.core.quota.config_tables import Attachment, ConfigTables
from headgate.core.quota.groups import ResourceGroup

BASE = "/admin/v2"
PRESENCE = Presence({"t"}, {"t/n"})
DEFAULT = AdminParameters(frozenset({"secret"}))


def put_a(tables=None, rate=5):
    request = Request("PUT", f"{BASE}/resourcegroups/a", "secret", "{}", {"publishRateInMsgs": rate})
    return request, decide(request, ConfigTables() if tables is None else tables, PRESENCE, DEFAULT)


def test_a_create_that_loses_against_a_create_of_the_same_name_is_refused():
    request, lost = put_a()
    now = ConfigTables().written(ResourceGroup(1, "a", version=1))

    refused = after_conflict(lost, request, now, PRESENCE, DEFAULT)

    assert (409, {"reason": "ResourceGroup already exists"}) == (refused.response.status, refused.response.json)
    assert refused.change is None


def test_other_conflicts_are_decided_again_on_what_the_tables_hold_now():
    request, lost = put_a()
    now = ConfigTables().written(ResourceGroup(1, "b", version=1))

    again = after_conflict(lost, request, now, PRESENCE, DEFAULT)

    assert (204, 2, 2, 1) == (
        again.response.status,
        again.change.row.group_id,
        again.change.row.version,
        again.change.read_version,
    )


def test_a_decision_after_a_conflict_may_be_a_refusal():
    tables = ConfigTables().written(ResourceGroup(1, "a", version=1))
    request = Request("DELETE", f"{BASE}/resourcegroups/a", "secret")
    lost = decide(request, tables, PRESENCE, DEFAULT)
    now = tables.written(Attachment("tenant", "t", "a", 2))

    assert [412, 404] == [
        after_conflict(lost, request, now, PRESENCE, DEFAULT).response.status,
        after_conflict(lost, request, ConfigTables(), PRESENCE, DEFAULT).response.status,
    ]


def test_after_three_retries_a_conflict_is_409():
    tables = ConfigTables().written(ResourceGroup(1, "a", version=1))
    request, decision = put_a(tables)
    retries = 0
    while decision.change is not None:
        tables = tables.written(Attachment("tenant", "t", f"other-{retries}", tables.version + 1))
        decision = after_conflict(decision, request, tables, PRESENCE, DEFAULT)
        retries += decision.change is not None

    assert (3, 409, {"reason": "Concurrent modification"}) == (
        retries,
        decision.response.status,
        decision.response.json,
    )
