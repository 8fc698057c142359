"""What the metrics endpoint tells of `headgate serve`."""

from prometheus_client import CollectorRegistry, Counter
from starlette.types import ASGIApp, Message, Receive, Scope, Send


class Counted:
    """Answers, by status, as they begin; and connections that are refused."""

    def __init__(self, app: ASGIApp) -> None:
        self.registry = CollectorRegistry()
        self._app = app
        self._answers = Counter(
            "headgate_serve_answers", "Answers to requests, by status.", ["status"], registry=self.registry
        )
        self.refused = Counter(
            "headgate_serve_refused_connections", "Connections above the bound, closed.", registry=self.registry
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def counting(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._answers.labels(str(message["status"])).inc()
            await send(message)

        await self._app(scope, receive, counting)
