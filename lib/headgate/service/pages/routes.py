"""The addresses of the page: views as HTML or JSON, its style and script, and reports of replays."""

from asyncio import CancelledError, get_running_loop, wrap_future

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from headgate.service.pages.answers import HTML, JSON, Pages
from headgate.service.pages.rendered import HERE
from headgate.service.pages.replays import REPORT, report_of
from headgate.service.pages.views import REASONS, VIEWS, View

STATIC = "/static"
REPORT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox; form-action 'none'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
"""Of a report, which has its style and pictures in itself, and no scripts."""
ROOTS = ("/", STATIC, *sorted({"/" + view.path.split("/")[1] for view in (*VIEWS, REASONS)}))
"""Where browsers go: the first part of each address of the page."""


def page_routes(pages: Pages, output: str) -> list[BaseRoute]:
    """GET and HEAD alone: nothing can be changed here."""

    async def report(request: Request) -> Response:
        path = await run_in_threadpool(report_of, output, request.path_params.get("folder", "."))
        if path is None:
            return await _answered(_REPLAYS, request, pages, status=404)
        return FileResponse(path, media_type=HTML, headers={"Content-Security-Policy": REPORT_POLICY})

    return [
        Route("/", lambda _: RedirectResponse("/now", 302)),
        Mount(STATIC, StaticFiles(directory=HERE / "static")),
        Route(f"/replays/{REPORT}", report),
        Route(f"/replays/{{folder:path}}/{REPORT}", report),
        *(Route(view.path, _Endpoint(view, pages).get) for view in (*VIEWS, REASONS)),
    ]


_REPLAYS = next(view for view in VIEWS if view.template == "replays")


class _Endpoint:
    def __init__(self, view: View, pages: Pages) -> None:
        self._view, self._pages = view, pages

    async def get(self, request: Request) -> Response:
        return await _answered(self._view, request, self._pages)


async def _answered(view: View, request: Request, pages: Pages, status: int | None = None) -> Response:
    given = dict(request.query_params) | request.path_params
    media_type = JSON if _wants_json(request) else HTML
    known = request.headers.get("If-None-Match", "")
    answer = await get_running_loop().run_in_executor(pages.lookers, pages.ready, view, given, media_type, known)
    if answer is None:
        try:
            answer = await wrap_future(pages.making(view, given, media_type))
        except CancelledError:
            return Response("The service is stopping.", 503)
    headers = {"Cache-Control": "no-cache", "Vary": "Accept"} | ({"ETag": answer.etag} if answer.etag else {})
    if answer.status == 304:
        return Response(status_code=304, headers=headers)
    return Response(answer.body, status or answer.status, headers, answer.media_type)


def _wants_json(request: Request) -> bool:
    accepted = request.headers.get("Accept", "")
    return request.query_params.get("format") == "json" or (JSON in accepted and HTML not in accepted)
