"""The array forms of kinds, replayed with --kernel. Imported only then: compiled kernels take time to load."""

from headgate.conformance.timed import TimedFactory

KERNEL_ADAPTERS: dict[str, TimedFactory] = {}
