"""The byte limit of a cache, what is accounted to it, and when a size pass is due (entry-cache 1, 7)."""

TRIGGER_SHARE = 0.98


class ByteLimit:
    """`current_bytes` is what insertions added less what removals took; it may be over the limit for a row.

    Arguments: `max_bytes` from 0; `watermark` from 0 to 1.
    Attributes: `trigger_bytes`, above which a size pass runs, and `target_bytes`, to which it frees.
    Source: entry-cache 1, 7
    """

    __slots__ = ("current_bytes", "max_bytes", "target_bytes", "trigger_bytes")

    def __init__(self, max_bytes: int, watermark: float) -> None:
        self.current_bytes = 0
        self.set(max_bytes, watermark)

    def set(self, max_bytes: int, watermark: float) -> None:
        """Change the limit; what is accounted stays."""
        self.max_bytes = max_bytes
        self.trigger_bytes = int(TRIGGER_SHARE * float(max_bytes))
        self.target_bytes = int(float(max_bytes) * watermark)

    def need_bytes(self) -> int | None:
        """What a size pass has to free now; None where none is due."""
        if self.current_bytes <= self.trigger_bytes or self.current_bytes <= self.target_bytes:
            return None
        return self.current_bytes - self.target_bytes
