"""The array forms of kinds, replayed with --kernel. Imported only then: compiled kernels take time to load."""

from collections.abc import Mapping
from typing import Any

from headgate.conformance import kernel_cache, kernel_protocol_broker, kernel_publish_limiter, kernel_token_bucket

KERNEL_ADAPTERS: Mapping[str, Any] = {
    "publish_limiter": kernel_publish_limiter.build_array_form,
    "token_bucket": kernel_token_bucket.build_array_form,
    "broker": kernel_protocol_broker.ArrayBroker,
    "cache_trace": kernel_cache.array_cache_of,
}
"""What builds each from a vector's config, as `registry.Kind.factory` does."""
