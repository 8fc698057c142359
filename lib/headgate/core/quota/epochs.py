"""Epochs: what is kept by their number means nothing under another length (resource-groups 1, 5)."""

from headgate.errors import StateError


def check_epoch(owner: str, stored_ms: int, epoch_ms: int) -> None:
    """Raise StateError unless state that was stored with epochs of `stored_ms` is read with the same length."""
    if stored_ms != epoch_ms:
        raise StateError(
            f"{owner} state: epochs of {stored_ms} ms, now resourceGroupEpochMillis is {epoch_ms}; start with new state"
        )
