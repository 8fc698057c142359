"""A cache in horizon mode as plain data and back (entry-cache 1, 14)."""

from collections import Counter

from headgate.core.cache.horizon.horizon_cache import HorizonCache
from headgate.core.cache.horizon.rounds import Round
from headgate.core.cache.horizon.shard import Shard
from headgate.core.cache.reasons import DeadReason
from headgate.core.cache.settings import CacheSettings
from headgate.core.cache.state import dump, load
from headgate.core.state import PlainData, check_fields

PLAIN_FIELDS = (
    "now_us",
    "seq",
    "rounds",
    "busy_rounds",
    "horizons",
    "inflow_share",
    "size_error",
    "peak_bytes",
    "overshoot_bytes",
)
FIELDS = (*PLAIN_FIELDS, "settings", "shards", "round", "refused")


def dump_horizon(cache: HorizonCache) -> PlainData:
    """The cache as plain data, between two rows. Later rows do not change it."""
    return {
        **{name: getattr(cache, name) for name in PLAIN_FIELDS},
        "settings": cache.settings.values(),
        "shards": [dump(shard) for shard in cache.shards],
        "round": [cache.round.rows, cache.round.size_bytes, cache.round.last_us],
        "refused": {str(reason): count for reason, count in cache.refused.items()},
    }


def load_horizon(state: PlainData) -> HorizonCache:
    """The cache that `dump_horizon` was given. Raises StateError where the fields are others."""
    check_fields("HorizonCache", state, FIELDS)
    cache = HorizonCache(CacheSettings.of(state["settings"]))
    for name in PLAIN_FIELDS:
        setattr(cache, name, state[name])
    cache.shards = [load(shard, Shard) for shard in state["shards"]]
    cache.round = Round(*state["round"])
    cache.refused = Counter({DeadReason(reason): count for reason, count in state["refused"].items()})
    return cache
