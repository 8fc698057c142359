"""The settings of an evaluation and the names of what it decides (resource-groups 9.2, 14, 15)."""

from dataclasses import dataclass
from enum import StrEnum

from headgate.core.quota.allocation.allocation import Profile, named
from headgate.errors import InvalidArgument


class Mode(StrEnum):
    """When a raise takes the gated branch: with a report missing, or always (resource-groups 9.2)."""

    FAST = "fast"
    STRICT = "strict"


class Reason(StrEnum):
    """The last rule of 9.2 that set a limit (resource-groups 15)."""

    UNSET = "unset"
    BLOCKED = "blocked"
    CLUSTER_SHARE = "cluster_share"
    ENTRY = "entry"
    TARGET = "target"
    GATED = "gated"
    DEAD_BAND = "dead_band"
    FENCED = "fenced"
    FLOOR = "floor"
    PROFILE = "profile"
    NO_TRANSPORT = "no_transport"


@dataclass(frozen=True, slots=True)
class StepParameters:
    """What every evaluation of a job shares; the defaults are those of resource-groups 14.

    Percentages are integers from 0 to 100. silent_rounds: A, epochs without a word after which a member counts at its
    safe share, >= 1. A profile or mode may be given by its name. Raises InvalidArgument for anything else.
    """

    profile: Profile = Profile.MAX_MIN
    mode: Mode = Mode.FAST
    overshoot_percent: int = 5
    floor_percent: int = 5
    missing_claim_percent: int = 20
    dead_band_percent: int = 0
    silent_rounds: int = 8

    def __post_init__(self) -> None:
        object.__setattr__(self, "profile", named(Profile, self.profile))
        object.__setattr__(self, "mode", named(Mode, self.mode))
        for name in ("overshoot_percent", "floor_percent", "missing_claim_percent", "dead_band_percent"):
            _between(0, getattr(self, name), 100, name)
        _between(1, self.silent_rounds, 2**31 - 1, "silent_rounds")


@dataclass(frozen=True, slots=True)
class CellLimit:
    """A broker's limit in a cell, and everything that explains it: a row of rg_limits without its key.

    limit: a second; None is not limited, 0 blocks.
    target: t_i, what the profile grants; 0 for a broker outside M, so that targets of a cell sum to the quota. None
        where not limited.
    safe_share: the quota by weight over M (over C while M is empty), 0 for a broker outside M; None where not limited.
    demand: D_i as the profile counted it; None is unbounded, 0 for a broker outside M.
    missing, silent: how many members of C are, the broker itself included.
    report_age: epochs between the view's and the newest one heard of the member that was not heard longest.
    reason: why `limit` is what it is.
    Source: resource-groups 5.4, 9.2, 15.
    """

    limit: int | None
    target: int | None
    safe_share: int | None
    demand: int | None
    missing: int
    silent: int
    report_age: int
    reason: Reason


def _between(least: int, value: object, most: int, name: str) -> None:
    if type(value) is not int or not least <= value <= most:
        raise InvalidArgument(f"{name}: got {value!r}, allowed is an integer from {least} to {most}")
