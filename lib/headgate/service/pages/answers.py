"""Answers of the page: made once for each state of the tables, however many ask."""

import hashlib
import secrets
from collections import OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from threading import Lock
from typing import TypeVar

import headgate
from headgate.core.quota.settings import QuotaSettings
from headgate.errors import HeadgateError, PageError
from headgate.service.pages import replays
from headgate.service.pages.output import Look, Output
from headgate.service.pages.read import Read
from headgate.service.pages.rendered import as_json, page
from headgate.service.pages.span import Asked, asked
from headgate.service.pages.views import Given, View

MOST_AT_ONCE = 16
SHORT_S = 3600
"""Views of longer ranges can take many seconds; the others do not wait for them."""
MOST_KEPT = 128
"""Answers; each is a page of at most some hundred KB."""
_PARAMETERS = ("from", "to", "last")
"""Of the query, of every view."""
Kept = TypeVar("Kept")
HTML, JSON = "text/html", "application/json"


@dataclass(frozen=True)
class Answer:
    """etag: equal as long as the answer is the same; changes with every start of the service."""

    status: int
    body: bytes
    media_type: str
    etag: str


class Pages:
    """Answers from one output, each made once for each state of the tables. One view at a time is made, and beside it
    one of a long range; neither what is kept nor what did not change waits for that. For any thread.

    A table that cannot be read, or is not there, is said on the page, and other views go on.
    """

    def __init__(self, output: Output, settings: QuotaSettings, place: str) -> None:
        self._output, self._settings, self._place = output, settings, place
        self._kept: OrderedDict[str, Answer] = OrderedDict()
        self._newest: OrderedDict[str, tuple[int, Answer]] = OrderedDict()
        self._start = secrets.token_hex(8)
        self._lock = Lock()
        self._ticks = count()
        self._makers = {is_long: ThreadPoolExecutor(1) for is_long in (False, True)}
        self.lookers = ThreadPoolExecutor(MOST_AT_ONCE)
        """For `ready` alone: the admin API has others."""
        self.made = 0
        """How many answers were made, and not found among those kept."""

    def answer(self, view: View, given: Given, media_type: str, known: str = "") -> Answer:
        """Status 304 and no body where `known`, an If-None-Match, names the answer."""
        return self.ready(view, given, media_type, known) or self.making(view, given, media_type).result()

    def ready(self, view: View, given: Given, media_type: str, known: str = "") -> Answer | None:
        """The answer if it needs no making, or none of the tables, else None."""
        try:
            look = self._output.look() if view.reads else Look(self._place)
            etag = self._etag(view, given, media_type, look)
        except (HeadgateError, OSError) as error:
            return self._problem(view, given, media_type, 503, str(error))
        if known and etag in known:
            return Answer(304, b"", media_type, etag)
        return self._found(etag) if view.reads else self._made(view, given, media_type, look, etag)

    def making(self, view: View, given: Given, media_type: str) -> Future[Answer]:
        """The answer, in its turn, of the tables as they are then: one for all who asked before it began."""
        maker = self._makers[_is_long(given)]
        return maker.submit(self._in_turn, view, given, media_type, next(self._ticks))

    def _in_turn(self, view: View, given: Given, media_type: str, asked_at: int) -> Answer:
        question = repr((view.path, sorted(given.items()), media_type))
        with self._lock:
            began, newest = self._newest.get(question, (-1, None))
        if newest is not None and began > asked_at:
            return newest
        began = next(self._ticks)
        try:
            look = self._output.look()
            etag = self._etag(view, given, media_type, look)
        except (HeadgateError, OSError) as error:
            return self._problem(view, given, media_type, 503, str(error))
        answer = self._found(etag)
        if answer is None:
            answer = self._made(view, given, media_type, look, etag)
        with self._lock:
            if answer.etag:
                _keep(self._kept, etag, answer)
            _keep(self._newest, question, (began, answer))
        return answer

    def _found(self, etag: str) -> Answer | None:
        with self._lock:
            if etag in self._kept:
                self._kept.move_to_end(etag)
            return self._kept.get(etag)

    def _made(self, view: View, given: Given, media_type: str, look: Look, etag: str) -> Answer:
        read, range_, problem, status, data = Read(look, self._settings), None, "", 200, None
        try:
            range_ = asked(given)
            data = view.view(read, range_, given)
        except PageError as error:
            status, problem = error.status, str(error)
        except HeadgateError as error:
            status, problem = 503, str(error)
        if status == 503:  # it can be over without a new version of a table
            return self._problem(view, given, media_type, status, problem)
        body = self._body(view, given, media_type, read, range_=range_, data=data, problem=problem, etag=etag)
        with self._lock:
            self.made += 1
        return Answer(status, body, media_type, etag)

    def _problem(self, view: View, given: Given, media_type: str, status: int, problem: str) -> Answer:
        body = self._body(view, given, media_type, Read(Look(self._place), self._settings), problem=problem)
        return Answer(status, body, media_type, "")

    def _body(
        self,
        view: View,
        given: Given,
        media_type: str,
        read: Read,
        *,
        range_: Asked | None = None,
        data: object = None,
        problem: str = "",
        etag: str = "",
    ) -> bytes:
        if media_type == JSON:
            return as_json(view, data, read.statements, problem).encode()
        name = _heading(view, given, data)
        about = {"output": self._place, "etag": etag, "problem": problem}
        text = page(view, name, data, range_, read.statements, kept=_own(view, given), **about)
        return text.encode(errors="replace")

    def _etag(self, view: View, given: Given, media_type: str, look: Look) -> str:
        names = (*_PARAMETERS, *([view.parameter] if view.parameter else []))
        asked_for = [given.get(name) for name in names], _own(view, given)
        state = look.key(view.tables) if view.tables else (look.key(tuple(look.versions)), replays.folders(self._place))
        key = repr((headgate.__version__, self._start, view.path, asked_for, media_type, state))
        return f'"{hashlib.sha256(key.encode(errors="replace")).hexdigest()[:32]}"'


def _keep(kept: OrderedDict[str, Kept], key: str, value: Kept) -> None:
    """At most MOST_KEPT, the newest."""
    kept[key] = value
    kept.move_to_end(key)
    while len(kept) > MOST_KEPT:
        kept.popitem(last=False)


def _is_long(given: Given) -> bool:
    with suppress(PageError):
        return asked(given).longest_s > SHORT_S
    return False


def _heading(view: View, given: Given, data: object) -> str:
    """What the view is about: as the tables name it, else as it was asked for."""
    named: str | None = getattr(data, "about", None) or getattr(data, "topic", None)
    return named or (given[view.parameter] if view.parameter else "")


def _own(view: View, given: Given) -> Given:
    """The view's own parameter of the query, if it is given."""
    own = view.query and given.get(view.query.name)
    return {view.query.name: own} if view.query and own else {}
