"""The smallest limits of topics and tenants under which publishes wait no longer than a bound allows.

First topics, each by itself; then tenants, with these limits of topics in place. Messages come before bytes. Limits of
topics do not touch each other, nor do quotas of tenants, so that one run tries a rate for all of them.
"""

from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, field

from headgate.conf import Conf
from headgate.core.quota.groups import UNLIMITED, RatePair
from headgate.core.topic_names import full_name, is_path_name, tenant_of, without_partition
from headgate.tryout.bound import Bound
from headgate.tryout.loads import Load, tenant_loads, topic_loads
from headgate.tryout.notches import Search, notch_from, rate_at, together
from headgate.tryout.recommended_conf import (
    own_groups,
    with_tenants,
    with_topics,
    without_limits,
    without_shared_limits,
)
from headgate.tryout.waiting import Publishes, Switch, Waited, by_name, waits

FEWEST = 100
"""Publishes without which nothing can be said."""

Say = Callable[[str], None]
Rates = dict[str, RatePair]


@dataclass(frozen=True)
class Recommended:
    """topics, tenants: their limits. own: each tenant's group. loads: of all that publish.

    few_topics, few_tenants: with fewer publishes than FEWEST, or nothing but empty ones. unnamed: topics and tenants
    whose names conf files cannot hold. helpless: tenants of which a limit of topics that are not recommended
    for holds back more than the bound allows, whatever their quota.
    """

    bound: Bound
    topics: Rates
    tenants: Rates
    own: Mapping[str, str]
    topic_loads: Mapping[str, Load]
    tenant_loads: Mapping[str, Load]
    few_topics: list[str]
    few_tenants: list[str]
    unnamed: list[str]
    helpless: list[str]
    rows: int


@dataclass
class Runs:
    """Counts runs of the rules for who waits for them. say: takes a line about each."""

    conf: Conf
    publishes: Publishes
    bound: Bound
    say: Say
    count: int = field(default=0)

    def waits(self, conf: Conf, about: str, switches: Iterable[Switch] = ()) -> dict[str, Waited]:
        """By topic or partition. about: what the run is for."""
        self.count += 1
        self.say(f"run {self.count}: {about}")
        return waits(conf, self.publishes, self.bound, switches)


def recommend(conf: Conf, runs: Runs) -> Recommended:
    """The limits for the trace. With [operator] state_key topic there are no groups, and no quotas of tenants."""
    bound = runs.bound
    by_second = runs.publishes.by_second()
    of_topics, of_tenants = topic_loads(by_second, bound), tenant_loads(by_second, bound)
    topics, few_topics = _enough(of_topics)
    tenants, few_tenants = _enough(of_tenants) if conf.settings.operator.state_key == "auto" else ([], [])
    unnamed = [*(name for name in topics if not _is_topic(name)), *(name for name in tenants if not is_path_name(name))]
    topics, tenants = ([name for name in names if name not in unnamed] for names in (topics, tenants))
    free = without_limits(conf)

    def topics_that_keep(rates: Rates, about: str) -> set[str]:
        return set(rates) - _late_topics(runs.waits(with_topics(free, rates), about), bound)

    found = _smallest({topic: of_topics[topic] for topic in topics}, topics_that_keep, "topics", 1)
    own = own_groups(conf, tenants)
    set_ = with_topics(without_shared_limits(conf), found)

    def tenants_that_keep(rates: Rates, about: str) -> set[str]:
        waited = runs.waits(with_tenants(set_, rates, own), about)
        by_tenant = by_name(waited, tenant_of)
        late = {tenant_of(topic) for topic in _late_topics(waited, bound) & found.keys()}
        return {tenant for tenant in rates if tenant not in late and by_tenant[tenant].keeps(bound)}

    without = by_name(runs.waits(set_, "tenants without a quota"), tenant_of) if tenants else {}
    helpless = [tenant for tenant in tenants if not without[tenant].keeps(bound)]
    shared = conf.settings.operator.group_limits == "shared"
    asked = {
        tenant: of_tenants[tenant].with_lag() if shared else of_tenants[tenant]
        for tenant in tenants
        if tenant not in helpless
    }
    quotas = _smallest(asked, tenants_that_keep, "tenants", 3 if shared else 1)
    own = {tenant: own[tenant] for tenant in quotas}
    return Recommended(
        *(bound, found, quotas, own, of_topics, of_tenants),
        *(few_topics, few_tenants, unnamed, helpless, runs.publishes.rows),
    )


def _late_topics(waited: Mapping[str, Waited], bound: Bound) -> set[str]:
    """Those of which a partition does not keep the bound: each has the topic's limit for itself."""
    return {without_partition(name) for name, its in waited.items() if not its.keeps(bound)}


def _smallest(loads: Mapping[str, Load], keep: Callable[[Rates, str], set[str]], of: str, step: int) -> Rates:
    """The smallest rates. keep: who keeps the bound with these rates. step: how far guesses are off, in notches."""

    def passing(rates: Rates) -> set[str]:
        return keep(rates, f"limits of {len(rates):,} {of}")

    return together({name: _in_turn(load, step) for name, load in loads.items()}, passing)


def _in_turn(load: Load, step: int) -> Generator[RatePair, bool, RatePair]:
    """The smallest rate of messages, then of bytes with it: yields rates to try, and is sent whether they will do.

    None is below the mean and a tenth (Load.least): the trace may end before such a rate shows what it does.
    """
    found, off = UNLIMITED, 1.0  # how far the guess was off in messages: bytes are likely to be as far
    for place, guess in enumerate(load.guess):
        if load.busiest[place]:
            search = Search(notch_from(rate_at(guess) * off), step, lowest=notch_from(load.least[place]))
            while not search.is_over:
                search.hear(passed=(yield _put(found, place, rate_at(search.notch))))
            found, off = _put(found, place, rate_at(search.found)), rate_at(search.found) / rate_at(guess)
    return found


def _put(rates: RatePair, place: int, rate: int) -> RatePair:
    return (rate, rates[1]) if place == 0 else (rates[0], rate)


def _is_topic(name: str) -> bool:
    return full_name(name) == name == without_partition(name)


def _enough(loads: Mapping[str, Load]) -> tuple[list[str], list[str]]:
    """Names of which enough is known, and the others."""
    enough = [name for name, load in loads.items() if load.publishes >= FEWEST and max(load.busiest)]
    return sorted(enough), sorted(loads.keys() - set(enough))
