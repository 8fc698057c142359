"""Kind cache_trace on the array form, for the settings that it takes."""

from collections.abc import Mapping
from typing import Any

from headgate.conformance.timed import UnsupportedVectorError
from headgate.core.cache.settings import CacheSettings
from headgate.core.kernels.cache.broker import ArrayCache
from headgate.core.kernels.cache.limits import refusal_of


def array_cache_of(config: Mapping[str, Any]) -> ArrayCache:
    """A fresh cache. Raises UnsupportedVectorError for settings that only the readable form has."""
    settings = CacheSettings.of(config)
    refused = refusal_of(settings)
    if refused is not None:
        raise UnsupportedVectorError(f"no array form: {refused}")
    return ArrayCache(settings, is_logged=True)
