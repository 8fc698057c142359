"""The protocol's messages: golden bytes, mistakes by name, and what was encoded is decoded."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.core.numbers import MAX
from headgate.core.protocol.reasons import Reason
from headgate.errors import InvalidArgument, WireError
from headgate.wire.messages import Receipt, ThrottleProducer, decode_feature_flags, encode
from unit.wire.drawn import numbers, throttle_producers


@pytest.mark.parametrize(
    ("command", "golden"),
    [
        (ThrottleProducer(1, 2, Reason.TopicProduceQuotaExceeded, 700), "08011002200028bc05"),
        (ThrottleProducer(300, 0, Reason.BrokerProduceQuotaExceeded, 0), "08ac02100020042800"),
        (ThrottleProducer(1, 2, Reason.Unspecified, 5), "080110022805"),
        (ThrottleProducer(MAX, 0, Reason.Unspecified, 1), "08ffffffffffffffff7f10002801"),
        (Receipt(300), "08ac02"),
        (Receipt(0), "0800"),
    ],
)
def test_a_message_has_these_bytes(command: ThrottleProducer | Receipt, golden: str) -> None:
    assert command.encode().hex() == golden
    assert type(command).decode(bytes.fromhex(golden)) == command


@pytest.mark.parametrize(
    ("message", "values", "golden"),
    [
        pytest.param("FeatureFlags", {"supports_throttle_producer_commands": True}, "881801", id="a flag"),
        pytest.param("FeatureFlags", {"supports_throttle_producer_commands": False}, "881800", id="a flag that is off"),
        pytest.param("FeatureFlags", {}, "", id="no flag"),
        pytest.param("ThrottleProducer", {"pause_for_millis": 5, "request_id": 1}, "08012805", id="in order, no more"),
        pytest.param("ThrottleProducer", {"throttling_reason": 7}, "2007", id="a reason of later days"),
    ],
)
def test_an_encoder_writes_what_it_is_given(message: str, values: dict[str, int], golden: str) -> None:
    assert encode(message, values).hex() == golden


def test_a_field_that_a_message_does_not_have_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="ThrottleProducerReceipt: got pause_ms, allowed are request_id"):
        encode("ThrottleProducerReceipt", {"request_id": 1, "pause_ms": 2})


@pytest.mark.parametrize("reason", [Reason.ConnectionOutboundBufferFull, Reason.ConnectionResumeCooldown])
def test_a_reason_that_is_never_told_is_not_written(reason: Reason) -> None:
    with pytest.raises(InvalidArgument, match=f"reason: got {reason.name}"):
        ThrottleProducer(1, 2, reason, 3).encode()


@pytest.mark.parametrize("number", [-1, MAX + 1])
def test_numbers_out_of_their_range_are_not_written(number: int) -> None:
    for fields in ((number, 2, 3), (1, number, 3), (1, 2, number)):
        request_id, producer_id, pause_ms = fields
        with pytest.raises(InvalidArgument):
            ThrottleProducer(request_id, producer_id, Reason.Unspecified, pause_ms).encode()
    with pytest.raises(InvalidArgument):
        Receipt(number).encode()


TOPIC, GROUP, UNSPECIFIED = (
    Reason.TopicProduceQuotaExceeded,
    Reason.ResourceGroupProduceQuotaExceeded,
    Reason.Unspecified,
)


@pytest.mark.parametrize(
    ("reason_bytes", "reason"),
    [
        pytest.param("2000", TOPIC, id="known"),
        pytest.param("", UNSPECIFIED, id="absent"),
        pytest.param("2005", UNSPECIFIED, id="a reason that is never told"),
        pytest.param("2063", UNSPECIFIED, id="99 itself"),
        pytest.param("20012007", UNSPECIFIED, id="unknown after known"),
        pytest.param("20072001", GROUP, id="known after unknown"),
        pytest.param("2001220100", GROUP, id="a wrong wire type after known"),
        pytest.param("220100", UNSPECIFIED, id="a wrong wire type alone"),
        pytest.param("208180808010", UNSPECIFIED, id="2^32+1 is not reason 1"),
        pytest.param("20ffffffffffffffffff01", UNSPECIFIED, id="-1"),
        pytest.param("2080808080808080808002", UNSPECIFIED, id="2^64 is not reason 0"),
        pytest.param("18012001", GROUP, id="field 3 is unknown"),
    ],
)
def test_a_reason_is_known_or_unspecified(reason_bytes: str, reason: Reason) -> None:
    read = ThrottleProducer.decode(bytes.fromhex("08011002" + reason_bytes + "2805"))

    assert read == ThrottleProducer(1, 2, reason, 5)


@pytest.mark.parametrize(
    ("message", "error"),
    [
        pytest.param("", "missing_request_id", id="empty"),
        pytest.param("2805", "missing_request_id", id="the first that is missing"),
        pytest.param("0a010110022805", "missing_request_id", id="a wrong wire type is no value"),
        pytest.param("08012805", "missing_producer_id", id="no producer"),
        pytest.param("08011002", "missing_pause_for_millis", id="no pause"),
        pytest.param("08808080808080808080012805", "out_of_range", id="2^63, before a later missing field"),
        pytest.param("28808080808080808080010801", "missing_producer_id", id="missing, before a later 2^63"),
        pytest.param("080110022880808080808080808001", "out_of_range", id="a pause of 2^63"),
        pytest.param("080110ffffffffffffffffff012805", "out_of_range", id="2^64-1"),
        pytest.param("088080808080808080800210022805", "out_of_range", id="2^64 is not 0"),
        pytest.param("08ffffffffffffffffff7f10022805", "out_of_range", id="2^70-1"),
        pytest.param("08ffffffffffffffffffff0110022805", "malformed", id="a varint of eleven bytes"),
        pytest.param("0801100228", "malformed", id="cut short"),
        pytest.param("00012805", "malformed", id="field 0, before what is missing"),
        pytest.param("0801100228053334", "malformed", id="a group at the end"),
    ],
)
def test_a_mistake_has_a_name(message: str, error: str) -> None:
    with pytest.raises(WireError) as refused:
        ThrottleProducer.decode(bytes.fromhex(message))
    assert refused.value.code == error


def test_the_last_occurrence_counts_even_where_an_earlier_one_is_out_of_range() -> None:
    assert Receipt.decode(bytes.fromhex("08808080808080808080010807")) == Receipt(7)


@pytest.mark.parametrize(
    ("flags", "supported"),
    [
        pytest.param("", False, id="no flags"),
        pytest.param("881801", True, id="385"),
        pytest.param("881800", False, id="385, but off"),
        pytest.param("3001", False, id="6 is a flag of replication"),
        pytest.param("300188180138013001", True, id="among others"),
        pytest.param("88180188 1800", False, id="the last one counts"),
        pytest.param("881802", True, id="2 is true, too"),
        pytest.param("881880808080808080808002", True, id="2^64 is not 0"),
        pytest.param("8a180101", False, id="a wrong wire type"),
    ],
)
def test_only_flag_385_is_read(flags: str, supported: bool) -> None:
    assert decode_feature_flags(bytes.fromhex(flags)) is supported


@given(throttle_producers)
def test_a_command_that_was_encoded_is_decoded(command: ThrottleProducer) -> None:
    assert ThrottleProducer.decode(command.encode()) == command


@given(numbers, st.binary(max_size=20))
def test_unknown_fields_around_a_receipt_change_nothing(request_id: int, content: bytes) -> None:
    unknown = b"\x7a" + bytes([len(content)]) + content

    assert Receipt.decode(unknown + Receipt(request_id).encode() + unknown) == Receipt(request_id)
