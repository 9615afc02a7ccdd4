"""Ctrl-C and SIGTERM ask for a stop at the end of the step; a second Ctrl-C stops at once."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType


class StopRequest:
    """Whether a stop was asked for, and by which signal."""

    def __init__(self) -> None:
        self.signal: signal.Signals | None = None

    def __bool__(self) -> bool:
        return self.signal is not None

    def receive(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        """A signal handler."""
        if self.signal is not None and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.signal = signal.Signals(number)


@contextlib.contextmanager
def listening() -> Iterator[StopRequest]:
    """Within the block signals set the request; outside the main thread nothing is listened to."""
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, request.receive) for number in numbers]
    try:
        yield request
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
