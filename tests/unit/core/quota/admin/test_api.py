"""The admin API: every row of its table, every rule below it (resource-groups 4)."""

import pytest

from headgate.core.quota.admin.api import AdminParameters, Presence, decide
from headgate.core.quota.admin.request import ABSENT, Request, bearer_token, route_of, unquoted
from headgate.core.quota.config_tables import Attachment, ConfigTables
from headgate.core.quota.groups import ResourceGroup
from headgate.core.quota.settings import MinusOne
from headgate.errors import InvalidArgument

BASE = "/admin/v2"
NAMESPACE = f"{BASE}/namespaces/t/n/resourcegroup"
TENANT = f"{BASE}/tenants/t/resourcegroup"
TOPIC = f"{BASE}/persistent/t/n/x/resourceGroup"
PRESENCE = Presence({"t"}, {"t/n"})
DEFAULT = AdminParameters(frozenset({"secret", "other"}))
NOT_LIMITED = {
    "publishRateInMsgs": -1,
    "publishRateInBytes": -1,
    "dispatchRateInMsgs": -1,
    "dispatchRateInBytes": -1,
}


class Api:
    """The API on tables that nobody else writes."""

    def __init__(self, parameters=DEFAULT):
        self.parameters = parameters
        self.tables = ConfigTables()
        self.changes = []

    def call(self, method, target, body=ABSENT, *, text="", token="secret"):
        """The response; `body` is JSON, `text` a body that is none."""
        request = Request(method, target, token, text, body)
        decision = decide(request, self.tables, PRESENCE, self.parameters)
        if decision.change is not None:
            self.changes.append(decision.change)
            self.tables = self.tables.written(decision.change.row)
        return decision.response

    def put(self, name="a", body=None, query=""):
        return self.call("PUT", f"{BASE}/resourcegroups/{name}{query}", {} if body is None else body)

    def rates(self, name="a"):
        return self.call("GET", f"{BASE}/resourcegroups/{name}").json


@pytest.fixture
def api():
    return Api()


@pytest.fixture
def with_a(api):
    api.put("a")
    return api


@pytest.mark.parametrize("token", [None, "", "Secret", "secret ", "user"])
@pytest.mark.parametrize(
    ("method", "target"),
    [("GET", f"{BASE}/resourcegroups"), ("BREW", "/unknown"), ("PUT", f"{BASE}/resourcegroups/a b")],
)
def test_without_an_admin_token_nothing_else_is_looked_at(api, token, method, target):
    response = api.call(method, target, token=token)

    assert (403, ["reason"]) == (response.status, list(response.json))


@pytest.mark.parametrize("token", ["secret", "other"])
def test_each_admin_token_is_good(api, token):
    assert 200 == api.call("GET", f"{BASE}/resourcegroups", token=token).status


def test_there_is_no_mode_without_tokens():
    with pytest.raises(InvalidArgument):
        AdminParameters(frozenset())


@pytest.mark.parametrize(
    ("header", "token"),
    [
        (None, None),
        ("", None),
        ("Bearer", None),
        ("Bearer ", None),
        ("Bearer T", "T"),
        ("bearer  T ", "T"),
        ("Basic T", None),
    ],
)
def test_the_token_stands_after_bearer(header, token):
    assert token == bearer_token(header)


@pytest.mark.parametrize(
    "target",
    [
        "",
        "/",
        BASE,
        f"{BASE}/",
        "/admin/v3/resourcegroups",
        f"{BASE}/resourcegroups/a/b",
        f"{BASE}/namespaces/t/n",
        f"{BASE}/namespaces/t/resourcegroup",
        f"{BASE}/tenants/t/n/resourcegroup",
        f"{TOPIC}/a",
        TOPIC.replace("resourceGroup", "resourcegroup"),
        f"{BASE}/other/t/n/x/resourceGroup",
        f"{BASE}/resourceGroups",
        f"{BASE}/persistent/t/n/a/b/resourceGroup",
    ],
)
def test_an_unknown_path_is_404(api, target):
    assert 404 == api.call("GET", target).status


@pytest.mark.parametrize(
    ("target", "allowed"),
    [
        (f"{BASE}/resourcegroups", ("GET",)),
        (f"{BASE}/resourcegroup/", ("GET",)),
        (f"{BASE}/resourcegroups/bad name", ("GET", "PUT", "DELETE")),
        (NAMESPACE, ("GET", "DELETE")),
        (f"{NAMESPACE}/a", ("POST", "PUT")),
        (TENANT, ("GET", "DELETE")),
        (f"{TENANT}/a", ("POST", "PUT")),
        (TOPIC, ("POST", "GET", "DELETE")),
    ],
)
def test_a_known_path_has_its_verbs_and_no_others(api, target, allowed):
    for method in {"GET", "PUT", "POST", "DELETE", "HEAD", "get"} - set(allowed):
        response = api.call(method, target)
        assert (405, allowed) == (response.status, response.allow)


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("a%2Fb", "a/b"),
        ("%C3%A9", "é"),
        ("a+b", "a+b"),
        ("%zz%", "%zz%"),
        ("%+1", "%+1"),
        ("%ff", "\ufffd"),
        ("é%20", "é "),
    ],
)
def test_segments_are_percent_decoded(text, plain):
    assert plain == unquoted(text)


def test_a_query_is_taken_apart_and_the_first_of_two_values_counts():
    assert {"minusOne": "keep", "x": "", "": ""} == route_of(
        f"{BASE}/resourcegroups/a?minusOne=keep&x&&minusOne=b"
    ).query


def test_names_are_listed_in_order_under_both_paths(api):
    for name in ("b", "a", "B"):
        assert 204 == api.put(name).status

    assert [["B", "a", "b"]] * 3 == [
        api.call("GET", f"{BASE}/{path}").json for path in ("resourcegroups", "resourcegroup", "resourcegroups/")
    ]


def test_a_group_is_returned_with_its_fields_in_order_and_replication_only_where_it_is_limited(api):
    api.put("a", {"dispatchRateInBytes": 0, "publishRateInMsgs": 5, "replicationDispatchRateInBytes": 9})
    shown = api.rates()

    assert (
        NOT_LIMITED | {"publishRateInMsgs": 5, "dispatchRateInBytes": 0, "replicationDispatchRateInBytes": 9} == shown
    )
    assert [*NOT_LIMITED, "replicationDispatchRateInBytes"] == list(shown)


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
@pytest.mark.parametrize("name", ["a%20b", "a b", "%C3%A9", "x" * 251, "a%2Fb", "a%", ""])
def test_a_bad_name_is_412(api, method, name):
    assert 412 == api.call(method, f"{BASE}/resourcegroups/{name}/", 7).status


def test_an_absent_group_is_404_also_to_delete(api):
    assert [404, 404] == [api.call(method, f"{BASE}/resourcegroups/a").status for method in ("GET", "DELETE")]


@pytest.mark.parametrize(
    ("body", "text", "status"),
    [
        (ABSENT, "", 400),
        (ABSENT, "{", 400),
        (None, "null", 400),
        ([1], "", 400),
        ("x", "", 400),
        (7, "", 400),
        ({"publishRateInMsgs": True}, "", 400),
        ({"publishRateInMsgs": 1.0}, "", 400),
        ({"publishRateInMsgs": "9"}, "", 400),
        ({"dispatchRateInBytes": [9]}, "", 400),
        ({"replicationDispatchRateInMsgs": 0.5}, "", 400),
        ({"publishRateInMsgs": -2, "dispatchRateInBytes": "x"}, "", 400),
        ({"publishRateInMsgs": -2}, "", 412),
        ({"publishRateInMsgs": 2**31}, "", 412),
        ({"dispatchRateInMsgs": 2**31}, "", 412),
        ({"publishRateInBytes": 2**63}, "", 412),
        ({"dispatchRateInBytes": 2**63}, "", 412),
        ({"replicationDispatchRateInMsgs": -2}, "", 412),
        ({"replicationDispatchRateInBytes": 2**63}, "", 412),
        ({"publishRateInMsgs": 2**31 - 1, "publishRateInBytes": 2**63 - 1}, "", 204),
        ({"replicationDispatchRateInMsgs": 2**63 - 1}, "", 204),
        ({"publishRateInMsgs": None, "other": "x", "rate": 1.5}, "", 204),
        ({}, "", 204),
    ],
)
def test_a_body_is_an_object_of_integers_in_range_and_a_failed_put_changes_nothing(api, body, text, status):
    api.put("a", {"publishRateInMsgs": 5})
    before = api.tables

    assert status == api.call("PUT", f"{BASE}/resourcegroups/a", body, text=text).status
    assert status == api.call("PUT", f"{BASE}/resourcegroups/new", body, text=text).status
    assert (status != 204) is (before == api.tables)


def test_what_a_create_does_not_limit_is_not_limited(api):
    api.put("a", {"publishRateInMsgs": -1, "publishRateInBytes": 0, "dispatchRateInMsgs": None}, "?minusOne=keep")

    assert NOT_LIMITED | {"publishRateInBytes": 0} == api.rates()


@pytest.mark.parametrize(
    ("configured", "query", "expected"),
    [
        ("unset", "", -1),
        ("unset", "?minusOne=unset", -1),
        ("unset", "?minusOne=keep", 7),
        ("keep", "", 7),
        ("keep", "?minusOne=keep", 7),
        ("keep", "?minusOne=unset", -1),
    ],
)
def test_minus_one_in_an_update_is_not_limited_or_keeps_as_configured_or_as_the_call_says(configured, query, expected):
    api = Api(AdminParameters(frozenset({"secret"}), MinusOne(configured)))
    api.put("a", dict.fromkeys(NOT_LIMITED, 7) | {"replicationDispatchRateInMsgs": 7})
    api.put("a", {"publishRateInMsgs": -1, "dispatchRateInBytes": 0, "replicationDispatchRateInMsgs": -1}, query)

    shown = api.rates()
    assert [expected, 7, 7, 0] == [shown[name] for name in NOT_LIMITED]
    assert expected == shown.get("replicationDispatchRateInMsgs", -1)


@pytest.mark.parametrize("query", ["?minusOne=", "?minusOne=KEEP", "?minusOne", "?x=1&minusOne=no"])
def test_other_values_of_minus_one_are_400(api, query):
    assert [400, 412] == [api.put("a", {}, query).status, api.put("a b", {}, query).status]


def test_byte_rates_above_the_largest_are_stored_as_sent_and_enforced_as_the_largest(api):
    api.put("a", {"publishRateInBytes": 2**63 - 1})

    assert (2**63 - 1, 2**53 - 1) == (api.rates()["publishRateInBytes"], api.tables.groups["a"].quota(0, 1))


def test_limits_of_replication_are_stored_with_a_warning(api):
    response = api.put("a", {"replicationDispatchRateInMsgs": 5, "replicationDispatchRateInBytes": -1})

    assert (204, 1) == (response.status, len(response.warnings))
    assert "replicationDispatchRateInMsgs" in response.warnings[0]
    assert () == api.put("a", {"publishRateInMsgs": 5}).warnings


@pytest.mark.parametrize("target", [f"{NAMESPACE}/a", f"{TENANT}/a", TOPIC])
def test_a_group_is_not_deleted_while_it_is_attached(with_a, target):
    assert 204 == with_a.call("POST", target, text="a").status
    assert 412 == with_a.call("DELETE", f"{BASE}/resourcegroups/a").status
    assert 204 == with_a.call("DELETE", target.removesuffix("/a")).status
    assert 204 == with_a.call("DELETE", f"{BASE}/resourcegroups/a").status


@pytest.mark.parametrize("path", [NAMESPACE, TENANT])
@pytest.mark.parametrize("verb", ["POST", "PUT"])
def test_a_group_is_attached_to_a_namespace_or_tenant_and_replaced(with_a, path, verb):
    with_a.put("b")

    assert (200, "") == (with_a.call("GET", path).status, with_a.call("GET", path).text)
    assert [204, "a"] == [with_a.call(verb, f"{path}/a").status, with_a.call("GET", path).text]
    assert [204, "b"] == [with_a.call(verb, f"{path}/b").status, with_a.call("GET", path).text]
    assert [204, "", 204] == [
        with_a.call("DELETE", path).status,
        with_a.call("GET", path).text,
        with_a.call("DELETE", path).status,
    ]


@pytest.mark.parametrize("path", [NAMESPACE.replace("/n/", "/absent/"), TENANT.replace("/t/", "/absent/")])
def test_attaching_asks_for_the_group_first_then_for_the_tenant_or_namespace(with_a, path):
    assert [412, 412, 404, 404, 404] == [
        with_a.call("POST", f"{path}/absent").status,
        with_a.call("POST", f"{path}/a b").status,
        with_a.call("POST", f"{path}/a").status,
        with_a.call("GET", path).status,
        with_a.call("DELETE", path).status,
    ]


def test_a_topic_takes_the_bare_name_as_body_and_an_empty_one_detaches(with_a):
    assert [204, 204, 200] == [
        with_a.call("GET", TOPIC).status,
        with_a.call("POST", TOPIC, text="a").status,
        with_a.call("GET", TOPIC).status,
    ]
    assert ["a", None] == [with_a.call("GET", TOPIC).text, with_a.call("GET", TOPIC.replace("/x/", "/y/")).text]
    assert [412, 412, 204, 204] == [
        with_a.call("POST", TOPIC, text="absent").status,
        with_a.call("POST", TOPIC, text='"a"').status,
        with_a.call("POST", TOPIC).status,
        with_a.call("GET", TOPIC).status,
    ]


def test_partitions_share_the_attachment_of_their_topic_and_schemes_do_not(with_a):
    with_a.call("POST", TOPIC.replace("/x/", "/a%2Fx-partition-3/"), text="a")
    got = [TOPIC.replace("/x/", f"/{name}/") for name in ("a%2Fx", "a%2Fx-partition-0", "x")]

    assert ["a", "a", None] == [with_a.call("GET", target).text for target in got]
    assert with_a.call("GET", got[0].replace("/persistent", "/non-persistent")).text is None
    assert {"persistent://t/n/a/x": "a"} == with_a.tables.attachments.topics


@pytest.mark.parametrize(
    ("target", "statuses"),
    [
        (TOPIC.replace("/n/", "/absent/"), [412, 404, 404, 404, 404]),
        (TOPIC.replace("/x/", "//"), [412, 412, 412, 404, 404]),
    ],
)
def test_a_topic_needs_a_namespace_that_is_present_and_a_name(with_a, target, statuses):
    assert statuses == [
        with_a.call("POST", target, text="absent").status,
        with_a.call("POST", target, text="a").status,
        with_a.call("POST", target).status,
        with_a.call("GET", target).status,
        with_a.call("DELETE", target).status,
    ]


@pytest.mark.parametrize(
    ("attached", "own", "applied"),
    [
        ([], None, None),
        ([f"{TENANT}/a"], None, "a"),
        ([f"{TENANT}/a", f"{NAMESPACE}/b"], None, "b"),
        ([f"{TENANT}/a", f"{NAMESPACE}/b", TOPIC], "c", "c"),
    ],
)
def test_applied_is_the_topics_group_or_its_namespaces_or_its_tenants(api, attached, own, applied):
    for name in ("a", "b", "c"):
        api.put(name)
    for target in attached:
        api.call("POST", target, text="c")

    assert [own, applied, own] == [
        api.call("GET", f"{TOPIC}{query}").text for query in ("", "?applied=true", "?applied=false")
    ]


def test_every_change_is_the_next_version_and_ids_are_never_given_again(api):
    api.put("a", {"publishRateInMsgs": 1})
    api.call("POST", f"{NAMESPACE}/a")
    api.call("DELETE", NAMESPACE)
    api.call("DELETE", f"{BASE}/resourcegroups/a")
    api.put("a")
    api.put("b")

    assert [0, 1, 2, 3, 4, 5] == [change.read_version for change in api.changes]
    assert [1, 2, 3, 4, 5, 6] == [change.row.version for change in api.changes]
    assert [True, False, False, False, True, True] == [change.creates for change in api.changes]
    assert Attachment("namespace", "t/n", None, 3) == api.changes[2].row
    assert [(1, False), (1, True), (2, False), (3, False)] == [
        (change.row.group_id, change.row.deleted) for change in api.changes if isinstance(change.row, ResourceGroup)
    ]


def test_what_changes_nothing_writes_nothing(with_a):
    with_a.call("POST", f"{NAMESPACE}/a")
    before = len(with_a.changes)
    responses = [
        with_a.call("POST", f"{NAMESPACE}/a"),
        with_a.put("a", {}),
        with_a.call("DELETE", TENANT),
        with_a.call("DELETE", TOPIC),
    ]

    assert [204] * 4 == [response.status for response in responses]
    assert before == len(with_a.changes)
