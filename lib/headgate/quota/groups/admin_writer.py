"""A request to the admin API, decided on the tables and written to them (resource-groups 4)."""

from dataclasses import dataclass

from headgate.core.quota.admin.api import AdminParameters, Change, Presence, after_conflict, decide
from headgate.core.quota.admin.request import Request, Response
from headgate.quota.tables.config_store import ConfigStore


@dataclass(frozen=True, slots=True)
class Written:
    """What a request is answered, and what it changed, None for nothing."""

    response: Response
    change: Change | None


def apply(store: ConfigStore, request: Request, presence: Presence, parameters: AdminParameters) -> Written:
    """Answer a request; what it changes is in the tables then, and was decided on what they held just before.

    Where others write at the same time it is decided again, three times at most; the last answer is 409 then, and the
    first for a group that others created. Any number of processes may write at once. Raises TableError.
    Source: resource-groups 4.
    """
    decision = decide(request, store.read(), presence, parameters)
    while decision.change is not None:
        if store.write([decision.change.row], decision.change.read_version):
            break
        decision = after_conflict(decision, request, store.read(), presence, parameters)
    return Written(decision.response, decision.change)
