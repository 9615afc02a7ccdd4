"""What a server accepts at most, so that no request and no visitor can take everything."""

from typing import Annotated

from msgspec import Meta

from elman.config.inference import Settings
from elman.errors import UserError


class Limits(Settings, frozen=True, kw_only=True):
    """Bounds of a server; what is beyond them is refused with a status and one line.

    Attributes:
        body: bytes of a request.
        text: characters of a text.
        steps: steps of a piece of music, and lines of a list.
        drawn: tokens or steps of one sample.
        tabs: tabs whose state is kept; the one that was left longest ago is forgotten first.
        tab_megabytes: states kept for a tab.
        tab_minutes: how long a tab that is left keeps its state.
        adapted: tabs that adapt at once, each with a copy of the model.
        connections: connections at once.
        waiting: requests that may wait for their turn.
        request_seconds: how long a client may take to send a request, or to take what was written.
    """

    body: Annotated[int, Meta(ge=1024)] = 262_144
    text: Annotated[int, Meta(ge=1)] = 10_000
    steps: Annotated[int, Meta(ge=1)] = 2_000
    drawn: Annotated[int, Meta(ge=1)] = 2_000
    tabs: Annotated[int, Meta(ge=1)] = 64
    tab_megabytes: Annotated[float, Meta(gt=0)] = 4.0
    tab_minutes: Annotated[float, Meta(gt=0)] = 30.0
    adapted: Annotated[int, Meta(ge=0)] = 4
    connections: Annotated[int, Meta(ge=1)] = 256
    waiting: Annotated[int, Meta(ge=1)] = 256
    request_seconds: Annotated[float, Meta(gt=0)] = 10.0


class Refused(UserError):  # noqa: N818 - an answer, not a fault
    """A request that is not answered: its status of HTTP, and after how many seconds to try again."""

    def __init__(self, status: int, line: str, retry_after: int | None = None) -> None:
        super().__init__(line)
        self.status, self.retry_after = status, retry_after


def busy(what: str, seconds: int = 1) -> Refused:
    """The server has too much to do; the same request may be answered later."""
    return Refused(429, f"{what}; try again in {seconds} s", seconds)
