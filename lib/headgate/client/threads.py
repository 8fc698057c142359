"""Threads of the client: they do not keep a program alive, and one of them may end the others."""

import threading
from collections.abc import Callable


def started(name: str, run: Callable[[], object]) -> threading.Thread:
    """A thread that runs; it ends with the program."""
    thread = threading.Thread(target=run, name=f"headgate-client-{name}", daemon=True)
    thread.start()
    return thread


def join(thread: threading.Thread, timeout_s: float) -> None:
    """Wait for a thread's end, unless it is the one that asks."""
    if thread is not threading.current_thread():
        thread.join(timeout_s)
