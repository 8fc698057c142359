"""How a gate hears that it is to end."""

import asyncio
import os
import signal

from headgate.gate.command import _stop_asked


def test_any_signal_wakes_the_loop_of_a_gate_and_is_handled_as_before_after_it(monkeypatch):
    monkeypatch.setattr("os.isatty", lambda _: False)  # else what tests print is dropped from here on

    async def asked(number):
        with _stop_asked() as stop:
            waked_by = signal.set_wakeup_fd(-1)
            signal.set_wakeup_fd(waked_by)
            assert waked_by != -1
            os.kill(os.getpid(), number)
            await asyncio.wait_for(stop.wait(), 60)

    def own(*_):
        pass

    before = {number: signal.signal(number, own) for number in (signal.SIGHUP, signal.SIGTERM)}
    try:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            asyncio.run(asked(number))
        assert signal.getsignal(signal.SIGTERM) is own
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
