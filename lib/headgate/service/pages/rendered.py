"""A view's data as a page of HTML or as JSON. Every value goes through the template's escaping."""

import dataclasses
import json
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined

import headgate
from headgate.service.pages.charts import Chart
from headgate.service.pages.read import Statement
from headgate.service.pages.span import LAST_S, LASTS_S, Asked, Span, iso
from headgate.service.pages.views import SECTIONS, View
from headgate.service.pages.words import FILTERS

HERE = Path(__file__).parent
_COMPUTED = ("share", "allowed_share", "hit_share")
"""Properties that JSON has besides the fields."""
_ENVIRONMENT = Environment(
    loader=FileSystemLoader(HERE / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_ENVIRONMENT.filters.update(FILTERS)
_ENVIRONMENT.globals.update(sections=SECTIONS, lasts_s=LASTS_S, version=headgate.__version__, iso=iso)


def page(
    view: View,
    heading: str,
    data: object,
    asked: Asked | None,
    statements: list[Statement],
    *,
    output: str,
    etag: str,
    problem: str = "",
    kept: Mapping[str, str] | None = None,
) -> str:
    """data: of the view, None with a problem, which is then all that it says. asked: None for a range that is wrong.

    kept: parameters of the query that links to other ranges of the view carry on.
    """
    span = getattr(data, "span", None)
    template = _ENVIRONMENT.get_template(f"{view.template if data is not None else 'problem'}.html")
    return template.render(
        view=view,
        heading=heading,
        v=data,
        problem=problem,
        asked=asked or Asked(),
        span=span if isinstance(span, Span) else None,
        rq=range_query(asked),
        kept=kept or {},
        statements=statements,
        output=output,
        etag=etag,
    )


def range_query(asked: Asked | None) -> str:
    """What links carry on, so that another view shows the same range; empty for the default."""
    if asked is None:
        return ""
    given = {
        "from": None if asked.first_us is None else iso(asked.first_us),
        "to": None if asked.end_us is None else iso(asked.end_us),
        "last": asked.last_s if asked.last_s != LAST_S and asked.first_us is None else None,
    }
    query = urlencode({name: value for name, value in given.items() if value is not None}, safe=":")
    return f"?{query}" if query else ""


def as_json(view: View, data: object, statements: list[Statement], problem: str = "") -> str:
    """The same data: numbers unrounded, times in microseconds since 1970."""
    content: dict[str, Any] = {"view": view.template}
    content |= {"reason": problem} if data is None else {"data": _plain(data)}
    return json.dumps(content | {"sql": [_plain(one) for one in statements]})


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
        if isinstance(value, Chart):
            fields |= {"step_s": value.span.step_s, "steps_us": list(value.span.steps_us)}
        return fields | {name: getattr(value, name) for name in _COMPUTED if hasattr(value, name)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, tuple | list) else value
