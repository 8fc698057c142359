"""The body of a PUT of a group: what it may say, and what it makes of a group (resource-groups 4)."""

from dataclasses import dataclass, replace

from headgate.core.quota.admin.request import ABSENT, Request, Response, refusal
from headgate.core.quota.groups import (
    NOT_LIMITED,
    RATE_FIELDS,
    REPLICATION_FIELDS,
    RatePair,
    Rates,
    ResourceGroup,
    rate_of_rest,
    rest_of_rate,
)
from headgate.core.quota.settings import MinusOne

FIELDS = (*RATE_FIELDS, *REPLICATION_FIELDS)
Given = tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class Body:
    """The values of the known fields in the order of FIELDS; None where the body has none, or null."""

    given: Given

    def created(self, group: ResourceGroup) -> ResourceGroup:
        """`group` with these rates: what is not given, and -1, is not limited."""
        return _with_rates(group, tuple(rate_of_rest(value) for value in self.given))

    def updated(self, group: ResourceGroup, minus_one: MinusOne) -> ResourceGroup:
        """`group` with these rates: what is not given stays, -1 is not limited, or stays as well."""
        kept = {None, NOT_LIMITED} if minus_one is MinusOne.KEEP else {None}
        old: Given = (*group.rates, *group.replication)
        rates = [
            before if value in kept else rate_of_rest(value) for value, before in zip(self.given, old, strict=True)
        ]
        return _with_rates(group, tuple(rates))

    def warnings(self, name: str) -> tuple[str, ...]:
        """What to log: limits of replication are stored and never enforced. resource-groups 2"""
        return tuple(
            f"resource group {name}: {field.name} is stored but not enforced, replication is exempt"
            for field, value in zip(FIELDS, self.given, strict=True)
            if field in REPLICATION_FIELDS and rate_of_rest(value) is not None
        )


def body_of(request: Request) -> Body | Response:
    """The body of a PUT, or its refusal: 400 for what is no object of integers, then 412 for a value out of range."""
    if request.json is ABSENT:
        return refusal(400, "The body is not valid JSON" if request.text else "The body is missing; send a JSON object")
    if not isinstance(request.json, dict):
        return refusal(400, "The body is not a JSON object")
    given: list[int | None] = []
    for field in FIELDS:
        value = request.json.get(field.name)
        if value is not None and type(value) is not int:
            return refusal(400, f"{field.name}: allowed are integers and null")
        given.append(value)
    for field, value in zip(FIELDS, given, strict=True):
        if value is not None and not NOT_LIMITED <= value <= field.largest:
            return refusal(412, f"{field.name}: got {value}, allowed are -1 (not limited) and 0 to {field.largest}")
    return Body(tuple(given))


def rest_of_group(group: ResourceGroup) -> dict[str, int]:
    """The group as GET returns it: the four rates, then limits of replication where there are any."""
    rates = {field.name: rest_of_rate(rate) for field, rate in zip(RATE_FIELDS, group.rates, strict=True)}
    replication = zip(REPLICATION_FIELDS, group.replication, strict=True)
    return rates | {field.name: rate for field, rate in replication if rate is not None}


def _with_rates(group: ResourceGroup, values: Given) -> ResourceGroup:
    publish_messages, publish_bytes, dispatch_messages, dispatch_bytes, messages, of_bytes = values
    rates: Rates = (publish_messages, publish_bytes, dispatch_messages, dispatch_bytes)
    replication: RatePair = (messages, of_bytes)
    return replace(group, rates=rates, replication=replication)
