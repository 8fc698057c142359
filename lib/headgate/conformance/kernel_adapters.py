"""The array forms of kinds, replayed with --kernel. Imported only then: compiled kernels take time to load."""

from headgate.conformance import kernel_publish_limiter, kernel_token_bucket
from headgate.conformance.timed import TimedFactory

KERNEL_ADAPTERS: dict[str, TimedFactory] = {
    "publish_limiter": kernel_publish_limiter.build_array_form,
    "token_bucket": kernel_token_bucket.build_array_form,
}
