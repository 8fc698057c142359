"""Answers of the page: made once for each state of the tables, however many ask."""

import hashlib
import secrets
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from threading import Lock

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
HTML, JSON = "text/html", "application/json"


@dataclass(frozen=True)
class Answer:
    """etag: equal as long as the answer is the same; changes with every start of the service."""

    status: int
    body: bytes
    media_type: str
    etag: str


class Pages:
    """Answers from one output. One view at a time is made, and beside it one of a long range: the others wait. What is
    kept needs no turn. For any thread.

    A table that cannot be read, or is not there, is said on the page, and other views go on.
    """

    def __init__(self, output: Output, settings: QuotaSettings, place: str) -> None:
        self._output, self._settings, self._place = output, settings, place
        self._kept: OrderedDict[str, Answer] = OrderedDict()
        self._start = secrets.token_hex(8)
        self._turns, self._looking = {is_long: Lock() for is_long in (False, True)}, Lock()
        self.threads = ThreadPoolExecutor(MOST_AT_ONCE)
        """For pages alone: the admin API has others, however long a view takes."""
        self.made = 0
        """How many answers were made, and not found among those kept."""

    def answer(self, view: View, given: Given, media_type: str, known: str = "") -> Answer:
        """Status 304 and no body where `known`, an If-None-Match, names the answer."""
        try:
            look = self._output.look()
            etag = self._etag(view, given, media_type, look)
        except (HeadgateError, OSError) as error:
            return self._problem(view, given, media_type, 503, str(error))
        if known and etag in known:
            return Answer(304, b"", media_type, etag)
        kept = self._found(etag)
        if kept is None:
            with self._turns[_is_long(given)]:
                kept = self._found(etag) or self._made(view, given, media_type, look, etag)
        return kept

    def _found(self, etag: str) -> Answer | None:
        with self._looking:
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
        body = self._body(view, given, media_type, read, range_=range_, data=data, problem=problem, etag=etag)
        answer = Answer(status, body, media_type, etag)
        with self._looking:
            self.made += 1
            self._kept[etag] = answer
            while len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
        return answer

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


def _is_long(given: Given) -> bool:
    with suppress(PageError):
        return asked(given).most_s > SHORT_S
    return False


def _heading(view: View, given: Given, data: object) -> str:
    """What the view is about: as the tables name it, else as it was asked for."""
    named: str | None = getattr(data, "about", None) or getattr(data, "topic", None)
    return named or (given[view.parameter] if view.parameter else "")


def _own(view: View, given: Given) -> Given:
    """The view's own parameter of the query, if it is given."""
    own = view.query and given.get(view.query.name)
    return {view.query.name: own} if view.query and own else {}
