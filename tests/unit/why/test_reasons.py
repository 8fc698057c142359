"""The closed list of reasons: every limit and condition has one, and each is explained."""

from pathlib import Path

from headgate.core.protocol.reasons import Reason
from headgate.core.publish.publish_limiter import Scope
from headgate.core.publish.throttle_tracker import ThrottleType
from headgate.core.reasons import HeldReason, condition_reason, dispatch_reason, protocol_reason, publish_reason
from headgate.why.meanings import MEANINGS, page

PAGE = Path(__file__).parents[3] / "docs" / "reasons.md"


def test_the_page_is_made_of_the_meanings_one_of_each_reason_in_their_order():
    assert [*HeldReason] == [*MEANINGS]
    assert PAGE.read_text() == page(), "run python -m headgate.why.meanings"


def test_every_limiter_condition_level_and_reason_of_the_protocol_has_one_of_its_own():
    publishes = {publish_reason(scope, unit) for scope in Scope for unit in ("messages", "bytes")}
    conditions = {condition_reason(one) for one in ThrottleType if not one.endswith("PublishRate")}
    levels = {dispatch_reason(level) for level in ("broker", "topic", "subscription", "group")}
    told = {protocol_reason(one) for one in Reason if one is not Reason.Unspecified}

    assert (6, 4, 4, 7) == tuple(map(len, (publishes, conditions, levels, told)))
    assert HeldReason.GROUP_BLOCKED is publish_reason("group", "bytes", is_blocked=True)
    assert protocol_reason(Reason.Unspecified) is None
    assert conditions < told
