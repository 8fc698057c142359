"""Names for why something happened: removals, misses, refused rows (entry-cache 1, 2, 13)."""

from enum import StrEnum


class Cause(StrEnum):
    """Why an entry left the cache: by its age, for size, in a sweep, or with its ledger or topic."""

    EXPIRED = "expired"
    EVICTED = "evicted"
    DROPPED = "dropped"
    INVALIDATED = "invalidated"


class MissReason(StrEnum):
    """Why an entry that was read was not served from the cache, beside the causes of its removal.

    cold: nothing is known. partial: it was cached, but its range was not. not_admitted: the policy did not want it.
    refused: there was no room for it.
    """

    COLD = "cold"
    PARTIAL = "partial"
    NOT_ADMITTED = "not_admitted"
    REFUSED = "refused"


class DeadReason(StrEnum):
    """Why a row was refused. The first three change nothing, the others find the clock moved."""

    UNKNOWN_KIND = "unknown_kind"
    BAD_ROW = "bad_row"
    LATE = "late"
    UNKNOWN_CURSOR = "unknown_cursor"
    CURSOR_EXISTS = "cursor_exists"
    LEDGER_DELETED = "ledger_deleted"
    ADD_NOT_INCREASING = "add_not_increasing"
    UNKNOWN_COPY = "unknown_copy"
