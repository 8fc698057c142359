"""cluster.toml: complete defaults, no unknown keys, every mistake with its place, and no topic in two resources."""

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from headgate.conf.cluster import Client, ClusterConf, ClusterSettings, Rate, Resource, load_cluster
from headgate.errors import ConfError

PULSAR = '[cluster]\nadmin_url = "http://127.0.0.1:8091"\n'
QUOTA = "publishRateInMsgs = 300\n"
ADMIN_URL = "http://HOST:PORT or https://HOST:PORT of any broker"
QUOTAS = "publishRateInMsgs, publishRateInBytes, dispatchRateInMsgs, dispatchRateInBytes"
KEYS = (
    "admin_url, bootstrap_servers, ca_file, groups, hold_s, kept_hours, kind, period_s, sasl_mechanism, "
    "sasl_password_file, sasl_username, security_protocol, timeout_s, token_file"
)
RESOURCE_KEYS = "dispatchRateInBytes, dispatchRateInMsgs, namespace, publishRateInBytes, publishRateInMsgs, tenant"
MESSAGES = "an integer from 1 to 2147483647; to a broker 0 means no limit"
BYTES = "an integer from 1 to 9223372036854775807; to a broker 0 means no limit"
TABLES = "allowed: tables, each under [[resource]]; correct it"
ONE_RESOURCE = "allowed: one resource for each topic; remove one of them"
NO_ADMIN_URL = "cluster: got no admin_url; allowed: one; write admin_url = .. under [cluster]"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "cluster.toml"


def read(file: Path, text: str) -> ClusterConf:
    file.write_text(text, "utf-8")
    return load_cluster(file)


def mistakes(file: Path, text: str) -> list[str]:
    """Without the folder."""
    with pytest.raises(ConfError) as raised:
        read(file, text)
    return [mistake.removeprefix(f"{file.parent}/") for mistake in raised.value.mistakes]


def resource(scope: str, name: str, quota: str = QUOTA) -> str:
    return f'[[resource]]\n{scope} = "{name}"\n{quota}'


def test_the_defaults_are_the_documented_ones():
    assert {
        "kind": "pulsar",
        "admin_url": None,
        "period_s": 5,
        "timeout_s": 5,
        "hold_s": 300,
        "kept_hours": 0,
        "token_file": None,
        "ca_file": None,
        "groups": False,
        "bootstrap_servers": None,
        "security_protocol": "PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_username": None,
        "sasl_password_file": None,
    } == ClusterSettings().model_dump()


def test_a_complete_file_is_read(file: Path):
    text = """
[cluster]
kind = "pulsar"
admin_url = "https://broker.example:8443/"
period_s = 3600
timeout_s = 10
hold_s = 86400
token_file = "token"
ca_file = "/etc/ca.pem"

[[resource]]
tenant = "acme"
publishRateInMsgs = 2147483647
publishRateInBytes = 9223372036854775807

[[ resource ]]  # blanks are allowed there
namespace = "other/a"
dispatchRateInMsgs = 1
dispatchRateInBytes = 1
"""
    settings = ClusterSettings(
        kind="pulsar",
        admin_url="https://broker.example:8443/",
        period_s=3600,
        timeout_s=10,
        hold_s=86_400,
        token_file="token",
        ca_file="/etc/ca.pem",
    )
    resources = [
        Resource("tenant", "acme", {Rate("in", "messages"): 2**31 - 1, Rate("in", "bytes"): 2**63 - 1}),
        Resource("namespace", "other/a", {Rate("out", "messages"): 1, Rate("out", "bytes"): 1}),
    ]
    assert ClusterConf(settings, resources, file.parent) == read(file, text)


def test_a_cluster_without_resources_is_valid(file: Path):
    assert [] == read(file, PULSAR).resources


def test_groups_are_resources_instead_of_those_in_the_file(file: Path):
    assert read(file, f"{PULSAR}groups = true\n").settings.groups
    expected = (
        "cluster.toml line 3: cluster.groups: got true, beside cluster.toml line 4: resource[0]; allowed: groups or "
        "[[resource]], not both; set it to false, or remove every [[resource]]"
    )
    found = mistakes(file, f"{PULSAR}groups = true\n{resource('tenant', 'acme')}")
    assert [expected] == [line.replace(f"{file.parent}/", "") for line in found]


def test_settings_are_frozen(file: Path):
    with pytest.raises(ValidationError, match="frozen"):
        read(file, PULSAR).settings.period_s = 3


@pytest.mark.parametrize(("name", "below"), [("token", "token"), ("keys/ca.pem", "keys/ca.pem")])
def test_paths_are_relative_to_the_file(file: Path, name: str, below: str):
    assert file.parent / below == read(file, PULSAR).path(name)


def test_absolute_paths_stay_as_they_are(file: Path):
    assert Path("/etc/token") == read(file, PULSAR).path("/etc/token")


@pytest.mark.parametrize(
    "url",
    [
        *("http://a", "https://a:1", "http://127.0.0.1:8091/", "http://a:65535", "http://[::1]:8091"),
        "https://[2001:db8::1]",
    ],
)
def test_an_admin_url_is_a_host_with_or_without_port(file: Path, url: str):
    assert url == read(file, f'[cluster]\nadmin_url = "{url}"\n').settings.admin_url


@pytest.mark.parametrize(
    "url",
    [
        *("", "here", "127.0.0.1:8091", "ftp://a:1", "http://", "http://:8091", "http://a:", "http://a:b"),
        *("http://a:123456", "http://a:1:2", "http://a:1/admin", "http://a:1?x", "http://a:1#x", "http://u:p@a:1"),
        *("http://a b:1", "http://::1", "http://[x]:1", "http://a:65536", "http://[::1]:65536/"),
    ],
)
def test_an_admin_url_that_is_none_is_a_mistake(file: Path, url: str):
    expected = (
        f"cluster.toml line 2: cluster.admin_url: got '{url}'; allowed: {ADMIN_URL}; correct it, or remove the line"
    )
    assert [expected] == mistakes(file, f'[cluster]\nadmin_url = "{url}"\n')


def default(value: object) -> str:
    return f"correct it, or remove the line for the default ({value})"


REMOVE = "correct it, or remove the line"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('kind = "pulser"', f"got 'pulser'; allowed: pulsar or kafka; {default('pulsar')}"),
        ("kind = 1", f"got 1; allowed: pulsar or kafka; {default('pulsar')}"),
        ("period_s = 0", f"got 0; allowed: an integer from 1 to 3600; {default(5)}"),
        ("period_s = 3601", f"got 3601; allowed: an integer from 1 to 3600; {default(5)}"),
        ("period_s = 5.0", f"got 5.0; allowed: an integer from 1 to 3600; {default(5)}"),
        ("period_s = true", f"got True; allowed: an integer from 1 to 3600; {default(5)}"),
        ('period_s = "5"', f"got '5'; allowed: an integer from 1 to 3600; {default(5)}"),
        ("timeout_s = 0", f"got 0; allowed: an integer from 1 to 10; {default(5)}"),
        ("timeout_s = 11", f"got 11; allowed: an integer from 1 to 10; {default(5)}"),
        ("hold_s = 9", f"got 9; allowed: an integer from 10 to 86400; {default(300)}"),
        ("hold_s = 86401", f"got 86401; allowed: an integer from 10 to 86400; {default(300)}"),
        ('token_file = ""', f"got ''; allowed: the path of a file with a bearer token; {REMOVE}"),
        ("ca_file = []", f"got []; allowed: the path of a PEM file of authorities; {REMOVE}"),
        ("period = 5", f"got an unknown key; allowed: {KEYS}; did you mean period_s?"),
        ("ADMIN_URL = 5", f"got an unknown key; allowed: {KEYS}; did you mean admin_url?"),
        ("x = 5", f"got an unknown key; allowed: {KEYS}; delete it"),
    ],
)
def test_a_wrong_setting_names_line_key_value_range_and_what_to_do(file: Path, line: str, expected: str):
    key = line.split(maxsplit=1)[0]
    assert [f"cluster.toml line 3: cluster.{key}: {expected}"] == mistakes(
        file, f"{PULSAR}{line}\n{resource('tenant', 'a')}"
    )


def test_limits_are_not_put_back_between_two_looks(file: Path):
    text = f"{PULSAR}period_s = 151\n{resource('tenant', 'a')}"
    expected = "cluster.toml line 3: cluster.period_s: got 151; allowed: at most 150, half of hold_s; or raise hold_s"
    assert [expected] == mistakes(file, text)
    assert read(file, text.replace("151", "150")).settings.period_s == 150


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("publishRateInMsgs = 0", f"got 0; allowed: {MESSAGES}; {REMOVE}"),
        ("publishRateInMsgs = -1", f"got -1; allowed: {MESSAGES}; {REMOVE}"),
        ("publishRateInMsgs = 2147483648", f"got 2147483648; allowed: {MESSAGES}; {REMOVE}"),
        ("publishRateInMsgs = 1.5", f"got 1.5; allowed: {MESSAGES}; {REMOVE}"),
        ("publishRateInBytes = 0", f"got 0; allowed: {BYTES}; {REMOVE}"),
        ('publishRateInBytes = "1"', f"got '1'; allowed: {BYTES}; {REMOVE}"),
        ("dispatchRateInMsgs = 0", f"got 0; allowed: {MESSAGES}; {REMOVE}"),
        ("dispatchRateInBytes = 9223372036854775808", f"got 9223372036854775808; allowed: {BYTES}; {REMOVE}"),
        ("namespace = 1", f"got 1; allowed: a name; {REMOVE}"),
        ('namespace = ""', f"got ''; allowed: a name; {REMOVE}"),
        ("namespace = {}", f"got {{}}; allowed: a name; {REMOVE}"),
        ("publishRateInMsg = 1", f"got an unknown key; allowed: {RESOURCE_KEYS}; did you mean publishRateInMsgs?"),
        ("x = 1", f"got an unknown key; allowed: {RESOURCE_KEYS}; delete it"),
    ],
)
def test_a_wrong_key_of_a_resource_names_the_resource_by_its_number(file: Path, line: str, expected: str):
    key = line.split(maxsplit=1)[0]
    text = f'{PULSAR}{resource("tenant", "acme")}[[resource]]\ntenant = "other"\n{line}\n'
    assert [f"cluster.toml line 8: resource[1].{key}: {expected}"] == mistakes(file, text)


@pytest.mark.parametrize(
    ("names", "got"), [("", "no name"), ('tenant = "a"\nnamespace = "b/c"\n', "tenant, namespace")]
)
def test_a_resource_has_one_name(file: Path, names: str, got: str):
    expected = f"cluster.toml line 3: resource[0]: got {got}; allowed: one of tenant, namespace; name one of them"
    assert [expected] == mistakes(file, f"{PULSAR}[[resource]]\n{names}{QUOTA}")


@pytest.mark.parametrize(
    ("scope", "name", "allowed"),
    [
        ("tenant", "a/b", "a tenant's name: A-Z a-z 0-9 _ - = : ."),
        ("tenant", "ä", "a tenant's name: A-Z a-z 0-9 _ - = : ."),
        ("namespace", "acme", "tenant/namespace"),
        ("namespace", "acme/a/b", "tenant/namespace"),
        ("namespace", "acme/", "tenant/namespace"),
    ],
)
def test_a_name_that_pulsar_does_not_allow_is_a_mistake(file: Path, scope: str, name: str, allowed: str):
    expected = f"cluster.toml line 4: resource[0].{scope}: got '{name}'; allowed: {allowed}; correct the name"
    assert [expected] == mistakes(file, PULSAR + resource(scope, name))


def test_a_resource_without_a_quota_is_a_mistake(file: Path):
    expected = f"cluster.toml line 3: resource[0]: got no quota; allowed: one or more of {QUOTAS}; write one"
    assert [expected] == mistakes(file, PULSAR + resource("tenant", "acme", ""))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (("tenant", "acme"), ("namespace", "acme/a")),
        (("namespace", "acme/a"), ("tenant", "acme")),
        (("tenant", "acme"), ("tenant", "acme")),
        (("namespace", "acme/a"), ("namespace", "acme/a")),
    ],
)
def test_resources_that_share_topics_are_a_mistake_in_either_order(
    file: Path, first: tuple[str, str], second: tuple[str, str]
):
    got = f"got {' '.join(second)}, beside {' '.join(first)}"
    expected = [f"cluster.toml line 6: resource[1]: {got}; {ONE_RESOURCE}"]
    assert expected == mistakes(file, PULSAR + resource(*first) + resource(*second))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", [f"cluster.toml: {NO_ADMIN_URL}"]),
        ("[cluster]\n", [f"cluster.toml line 1: {NO_ADMIN_URL}"]),
        (
            f'{PULSAR}ca_file = "ca.pem"\n',
            ["cluster.toml line 3: cluster.ca_file: got a file; allowed: one with https://; change admin_url"],
        ),
    ],
)
def test_an_admin_url_is_there_and_fits_the_ca_file(file: Path, text: str, expected: list[str]):
    assert expected == mistakes(file, text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            f'{PULSAR}[resource]\ntenant = "acme"\n',
            f"cluster.toml line 3: resource: got {{'tenant': 'acme'}}; {TABLES}",
        ),
        (f'resource = "acme"\n{PULSAR}', f"cluster.toml line 1: resource: got 'acme'; {TABLES}"),
        (f'resource = ["acme"]\n{PULSAR}', f"cluster.toml line 1: resource: got ['acme']; {TABLES}"),
        ("[[cluster]]\n", "cluster.toml line 1: cluster: got [{}]; allowed: a table, [cluster]; correct it"),
        ("cluster = 1\n", "cluster.toml line 1: cluster: got 1; allowed: a table, [cluster]; correct it"),
        (
            f"[clutser]\n{resource('tenant', 'acme')}",
            "cluster.toml line 1: clutser: got an unknown key; allowed: cluster, resource; did you mean cluster?",
        ),
        (
            "[cluster]\nadmin_url = here\n",
            "cluster.toml line 2: got Invalid value at column 13; allowed: TOML; correct the syntax",
        ),
        (
            "[cluster]\nadmin_url = \n\n[cluster",
            "cluster.toml line 2: got Invalid value at column 13; allowed: TOML; correct the syntax",
        ),
        (
            "[cluster",
            (
                "cluster.toml line 1: got Expected ']' at the end of a table declaration at the end of the file; "
                "allowed: TOML; correct the syntax"
            ),
        ),
    ],
)
def test_a_mistake_of_the_whole_is_named(file: Path, text: str, expected: str):
    assert [expected] == mistakes(file, text)


def test_a_resource_that_is_written_in_one_line_is_named_without_it(file: Path):
    expected = f"cluster.toml: resource[0]: got no quota; allowed: one or more of {QUOTAS}; write one"
    assert [expected] == mistakes(file, f'resource = [{{tenant = "acme"}}]\n{PULSAR}')


def test_a_file_that_is_not_there_is_named(file: Path):
    with pytest.raises(ConfError) as raised:
        load_cluster(file)
    expected = f"{file}: got No such file or directory; allowed: a readable file; correct --cluster"
    assert (expected,) == raised.value.mistakes


def test_a_folder_is_no_file(tmp_path: Path):
    with pytest.raises(ConfError) as raised:
        load_cluster(str(tmp_path))
    assert (f"{tmp_path}: got Is a directory; allowed: a readable file; correct --cluster",) == raised.value.mistakes


def test_a_file_that_is_not_utf_8_is_named(file: Path):
    file.write_bytes(b'[cluster]\ntoken_file = "\xff"\n')
    with pytest.raises(ConfError) as raised:
        load_cluster(file)
    got = "'utf-8' codec can't decode byte 0xff in position 24: invalid start byte"
    assert (f"{file}: got {got}; allowed: TOML in UTF-8; correct the file",) == raised.value.mistakes


def test_mistakes_of_all_tables_are_told_at_once(file: Path):
    text = (
        f"{PULSAR}"
        'ca_file = "ca.pem"\n'
        "[[resource]]\n"
        f"{resource('tenant', 'acme', 'publishRateInMsgs = 0')}\n"
        f"{resource('tenant', 'other', '')}"
        f"{resource('namespace', 'other/a', 'x = 1')}\n"
        f"{resource('namespace', 'other/b')}"
    )
    assert [
        "line 3: cluster.ca_file",
        "line 4: resource[0]",
        "line 4: resource[0]",
        "line 7: resource[1].publishRateInMsgs",
        "line 8: resource[2]",
        "line 12: resource[3].x",
        "line 13: resource[4]",
    ] == [mistake.removeprefix("cluster.toml ").partition(": got")[0] for mistake in mistakes(file, text)]


def test_resources_are_checked_beside_a_wrong_setting(file: Path):
    expected = [
        "cluster.toml line 3: cluster.period_s: got 0; allowed: an integer from 1 to 3600; " + default(5),
        f"cluster.toml line 4: resource[0]: got no quota; allowed: one or more of {QUOTAS}; write one",
    ]
    assert expected == mistakes(file, f"{PULSAR}period_s = 0\n{resource('tenant', 'acme', '')}")


@pytest.mark.parametrize("kind", ['"kafak"', "[]", "{}"])
def test_where_the_kind_is_unknown_no_key_of_a_resource_is_wrong(file: Path, kind: str):
    (found,) = mistakes(file, f"[cluster]\nkind = {kind}\n{resource('user', 'acme', CLIENT)}")
    assert found.startswith("cluster.toml line 2: cluster.kind: got ")


def test_no_secret_of_a_token_file_is_in_the_settings(file: Path):
    file.with_name("token").write_text("hunter2")
    assert "hunter2" not in repr(read(file, PULSAR + 'token_file = "token"\n'))


@pytest.mark.parametrize(
    ("scope", "name", "topic", "expected"),
    [
        ("tenant", "acme", "persistent://acme/a/t", True),
        ("tenant", "acme", "non-persistent://acme/b/t-partition-3", True),
        ("tenant", "acme", "persistent://acme2/a/t", False),
        ("tenant", "acme", "persistent://other/acme/t", False),
        ("namespace", "acme/a", "persistent://acme/a/t/with/slashes", True),
        ("namespace", "acme/a", "persistent://acme/a2/t", False),
        ("namespace", "acme/a", "persistent://acme/b/a", False),
        ("tenant", "acme", "acme/a/t", False),
        ("tenant", "acme", "", False),
    ],
)
def test_a_resource_has_the_topics_of_its_tenant_or_namespace(scope: str, name: str, topic: str, expected: bool):
    assert expected is Resource(scope, name, {}).has(topic)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (("tenant", "acme"), ("tenant", "acme"), True),
        (("tenant", "acme"), ("tenant", "acme2"), False),
        (("tenant", "acme"), ("namespace", "acme/a"), True),
        (("tenant", "acme"), ("namespace", "acme2/a"), False),
        (("tenant", "a"), ("namespace", "acme/a"), False),
        (("namespace", "acme/a"), ("namespace", "acme/a"), True),
        (("namespace", "acme/a"), ("namespace", "acme/b"), False),
    ],
)
def test_overlap_is_the_same_from_both_sides(one: tuple[str, str], other: tuple[str, str], expected: bool):
    left, right = Resource(*one, {}), Resource(*other, {})
    assert (expected, expected) == (left.overlaps(right), right.overlaps(left))


NAMES = st.sampled_from(["a", "ab", "b"])
RESOURCES = NAMES.map(lambda tenant: Resource("tenant", tenant, {})) | st.tuples(NAMES, NAMES).map(
    lambda names: Resource("namespace", "/".join(names), {})
)


@given(RESOURCES, RESOURCES)
def test_resources_overlap_where_a_topic_is_part_of_both(one: Resource, other: Resource):
    topics = [f"persistent://{tenant}/{namespace}/t" for tenant in ("a", "ab", "b") for namespace in ("a", "ab", "b")]
    assert any(one.has(topic) and other.has(topic) for topic in topics) is one.overlaps(other)


def test_a_resource_is_written_as_its_scope_and_name():
    assert "namespace acme/a" == str(Resource("namespace", "acme/a", {}))


LINES = st.sampled_from(
    [
        *(
            "[cluster]",
            "[[cluster]]",
            "[resource]",
            "[[resource]]",
            "[resource.x]",
            "cluster = 1",
            "resource = [1, {}]",
        ),
        *('admin_url = "http://a:1"', 'kind = "x"', "kind = {}", 'tenant = "a"', "tenant = []", 'user = "a"'),
        *("publishRateInMsgs = 1", "publishRateInMsgs = nan", 'a.b = {c = "d"}', "="),
    ]
)


@given(st.lists(LINES, max_size=8))
def test_no_text_makes_reading_fail_but_with_its_mistakes(tmp_path_factory: pytest.TempPathFactory, lines: list[str]):
    file = tmp_path_factory.getbasetemp() / "cluster.toml"
    with suppress(ConfError):
        read(file, "\n".join(lines))


KAFKA = '[cluster]\nkind = "kafka"\nbootstrap_servers = "127.0.0.1:9092, b:9092"\n'
CLIENT = 'topic_prefix = "acme."\nproducer_byte_rate = 300\n'


@pytest.mark.parametrize(("scope", "name"), [("user", "user acme"), ("client_id", "client id acme")])
def test_a_client_of_kafka_has_a_quota_of_bytes_on_the_topics_that_begin_so(file: Path, scope: str, name: str):
    (client,) = read(file, KAFKA + resource(scope, "acme", CLIENT)).resources
    assert (name, {Rate("in", "bytes"): 300}) == (str(client), client.quotas)
    assert [True, False] == [client.has(topic) for topic in ("acme.t-partition-0", "acm-partition-0")]
    assert "b:9092" == client.shared_by("acme.t-partition-0", "b:9092")


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ('admin_url = "http://a:1"\n', ["line 4: cluster.admin_url: got a value"]),
        ("groups = true\n", ["line 4: cluster.groups: got a value"]),
        ('ca_file = "ca.pem"\n', ["line 4: cluster.ca_file: got a file"]),
        ('security_protocol = "TLS"\n', ["line 4: cluster.security_protocol: got 'TLS'"]),
        (
            'security_protocol = "SASL_SSL"\n',
            ["cluster.sasl_username: got none", "cluster.sasl_password_file: got none"],
        ),
        ('sasl_username = "a"\n', ["line 4: cluster.sasl_username: got a value"]),
        ('sasl_mechanism = "SCRAM-SHA-256"\n', ["line 4: cluster.sasl_mechanism: got a value"]),
        (
            resource("user", "acme", f'topic_prefix = "a"\nproducer_byte_rate = {2**53 + 1}\n'),
            ["line 7: resource[0].producer_byte_r"],
        ),
        (
            resource("user", "acme", ""),
            ["line 4: resource[0]: got no topic_prefix", "line 4: resource[0]: got no prod"],
        ),
        (resource("tenant", "acme", CLIENT), ["line 5: resource[0].tenant: got an unknown key"]),
        (resource("user", "acme", f'client_id = "a"\n{CLIENT}'), ["line 4: resource[0]: got user and client_id"]),
        (f"[[resource]]\n{CLIENT}", ["line 4: resource[0]: got no name"]),
        (
            resource("user", "acme", 'topic_prefix = "a"\nproducer_byte_rate = 0\n'),
            ["line 7: resource[0].producer_byte_r"],
        ),
        (
            resource("user", "a", CLIENT) + resource("client_id", "b", CLIENT.replace("acme.", "acme.x")),
            ["line 8: resource[1]: got client id b, beside user a"],
        ),
    ],
)
def test_mistakes_in_a_conf_of_kafka(file: Path, lines: str, expected: list[str]):
    found = mistakes(file, KAFKA + lines)
    assert len(expected) == len(found)
    assert all(
        mistake.removeprefix("cluster.toml ").removeprefix("cluster.toml: ").startswith(start)
        for start, mistake in zip(expected, found, strict=True)
    ), found


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (
            f'bootstrap_servers = "a:1"\nsasl_username = "a"\n{resource("user", "acme", CLIENT)}',
            'line 2: cluster.bootstrap_servers: got a value; allowed: none with kind = "pulsar"; write kind = "kafka"',
        ),
        (
            f'kind = "kafka"\nadmin_url = "http://a:1"\n{resource("tenant", "acme")}',
            'line 3: cluster.admin_url: got a value; allowed: none with kind = "kafka"; write kind = "pulsar"',
        ),
    ],
)
def test_where_the_kind_is_wrong_nothing_else_is(file: Path, lines: str, expected: str):
    assert [f"cluster.toml {expected}"] == mistakes(file, f"[cluster]\n{lines}")


@pytest.mark.parametrize(
    "line", ['security_protocol = "SSL"', 'sasl_mechanism = "SCRAM-SHA-256"', 'sasl_username = "a"']
)
def test_what_is_of_kafka_is_a_mistake_for_pulsar(file: Path, line: str):
    (found,) = mistakes(file, f"{PULSAR}{line}\n")
    key = line.split(maxsplit=1)[0]
    assert found.startswith(f'cluster.toml line 3: cluster.{key}: got a value; allowed: none with kind = "pulsar"; ')


def test_users_and_client_ids_are_not_limited_together(file: Path):
    (found,) = mistakes(
        file,
        KAFKA + resource("user", "a", CLIENT) + resource("client_id", "b", CLIENT.replace("acme.", "other.")),
    )
    assert found.endswith(
        "got client id b, beside user a; allowed: users or client ids, as a user's quota precedes those of its client "
        "ids; remove one of them"
    )


def test_kafka_without_servers_says_so(file: Path):
    (found,) = mistakes(file, '[cluster]\nkind = "kafka"\n')
    assert found.endswith(
        "cluster: got no bootstrap_servers; allowed: some; write bootstrap_servers = .. under [cluster]"
    )


NAMES_OF_CLIENTS = st.builds(
    lambda scope, name, prefix: Client(scope, name, {}, prefix),
    st.sampled_from(["user", "client id"]),
    st.sampled_from("ab"),
    st.sampled_from(["a", "ab", "b", "abc"]),
)


@given(NAMES_OF_CLIENTS, NAMES_OF_CLIENTS)
def test_clients_overlap_where_they_are_the_same_or_have_a_topic_in_common(one: Client, other: Client):
    shares = any(one.has(topic) and other.has(topic) for topic in ("a", "ab", "abc", "b"))
    assert one.overlaps(other) == (shares or (one.scope, one.name) == (other.scope, other.name)) == other.overlaps(one)
