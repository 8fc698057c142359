"""The admin API of resource groups over the tables of a job's output (resource-groups 4)."""

import math
import os
import socket
import time
from collections.abc import Callable
from pathlib import PurePath
from threading import Lock

from headgate.core.quota.admin.api import AdminParameters
from headgate.core.quota.admin.request import Request, Response, refusal
from headgate.core.quota.settings import QuotaSettings
from headgate.errors import TableError
from headgate.quota.groups.command import apply
from headgate.quota.groups.presence import presence_of
from headgate.quota.tables.opened import opened_config
from headgate.store_errors import is_away
from headgate.stores import BRIEF_IF_SMALL

_TRIED = "the admin API is off: this output is of headgate try or replay, and no job reads what is changed there"
_BY = f"the admin API on {socket.gethostname()}"
_NO_TOKENS = "the admin API is off without tokens: start headgate serve with --token-file"


class Admin:
    """What a request changes is in the tables once it is answered, and nothing is where it is refused.

    One request at a time: those of one service are no conflicts of each other. The tables may come later; until then,
    and while they cannot be read or written, the answer is 503. A store is waited for as BRIEF_IF_SMALL has it; who
    waited meanwhile for another request does not try again. 503 for a change says if it may be done. For any thread.

    tokens: of administrators; without any, every request is refused. tell: takes a line. is_tried: the output is of
    headgate try or replay; then every request is refused as well. clock: in seconds.
    """

    def __init__(
        self,
        output: str | PurePath,
        settings: QuotaSettings,
        tokens: frozenset[str],
        tell: Callable[[str], None],
        *,
        is_tried: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._output, self._settings, self._tell, self._is_tried = output, settings, tell, is_tried
        self._parameters = AdminParameters(tokens, settings.update_minus_one, settings.usage_shards) if tokens else None
        self._clock, self._lock = clock, Lock()
        self._in_vain_s = -math.inf
        """When a request last ended that waited for a store in vain."""

    def answer(self, request: Request) -> Response:
        """The answer to a request; it waits for its turn."""
        if self._parameters is None or self._is_tried:
            return refusal(403, _TRIED if self._is_tried else _NO_TOKENS)
        came_s = self._clock()
        with self._lock:
            if self._in_vain_s > came_s:
                return refusal(503, f"{self._output} does not answer, and nothing was done; ask again later")
            try:
                # the output may be another one by now
                store = opened_config(self._output, self._settings, _BY, BRIEF_IF_SMALL)
                presence = presence_of(self._output, store.read().attachments, BRIEF_IF_SMALL)
                response = apply(store, request, presence, self._parameters).response
            except TableError as error:
                if is_away(error):
                    self._in_vain_s = self._clock()
                return refusal(503, str(error))
        for warning in response.warnings:
            self._tell(warning)
        return response

    @property
    def is_read_only(self) -> bool:
        """Whether nothing can be written below the output, as far as can be seen."""
        return os.path.exists(self._output) and not os.access(self._output, os.W_OK)  # noqa: PTH110
