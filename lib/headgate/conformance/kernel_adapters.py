"""The array forms of kinds, replayed with --kernel. Imported only then: compiled kernels take time to load."""

from collections.abc import Mapping
from typing import Any

from headgate.conformance import kernel_protocol_broker, kernel_publish_limiter, kernel_token_bucket
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


KERNEL_ADAPTERS: Mapping[str, Any] = {
    "publish_limiter": kernel_publish_limiter.build_array_form,
    "token_bucket": kernel_token_bucket.build_array_form,
    "broker": kernel_protocol_broker.ArrayBroker,
    "cache_trace": array_cache_of,
}
"""What builds each from a vector's config, as `registry.VectorKind.factory` does."""
