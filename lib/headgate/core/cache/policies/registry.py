"""Which class is behind a policy's name (entry-cache 10)."""

from collections.abc import Mapping

from headgate.core.cache.policies.belady import Belady
from headgate.core.cache.policies.capped import Fifo, Lru
from headgate.core.cache.policies.cursor_distance import CursorDistance
from headgate.core.cache.policies.pip430 import Pip430
from headgate.core.cache.policies.policy import Policy
from headgate.core.cache.policies.pre_pip import PrePip
from headgate.core.cache.policies.s3fifo import S3Fifo
from headgate.core.cache.policies.sieve import Sieve
from headgate.core.cache.policies.without_strategy import Pip430WithoutStrategy
from headgate.core.cache.settings import CacheSettings, PolicyName
from headgate.core.cache.store import EntryStore
from headgate.core.cache.topics.topic import Topic

POLICIES: dict[PolicyName, type[Policy]] = {
    PolicyName.PIP430: Pip430,
    PolicyName.LRU: Lru,
    PolicyName.FIFO: Fifo,
    PolicyName.SIEVE: Sieve,
    PolicyName.S3FIFO: S3Fifo,
    PolicyName.BY_MARK_DELETE: PrePip,
    PolicyName.SIZE_PROPORTIONAL: PrePip,
    PolicyName.CURSOR_DISTANCE: CursorDistance,
    PolicyName.BELADY: Belady,
}


def policy_of(settings: CacheSettings, store: EntryStore, topics: Mapping[str, Topic]) -> Policy:
    """The policy that the settings name, over a store and its topics."""
    kind = POLICIES[settings.policy]
    if kind is Pip430 and not settings.strategy:
        kind = Pip430WithoutStrategy
    return kind(settings, store, topics)
