"""How a gate hears that it is to end."""

import asyncio
import os
import signal

from headgate.gate.command import _stop_asked


def test_a_signal_wakes_a_gate_that_has_nothing_to_do_and_is_handled_as_before_after_it():
    async def asked(number):
        with _stop_asked() as stop:
            waked_by = signal.set_wakeup_fd(-1)
            signal.set_wakeup_fd(waked_by)
            assert waked_by != -1
            os.kill(os.getpid(), number)
            await asyncio.wait_for(stop.wait(), 60)

    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            asyncio.run(asked(number))
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    finally:
        signal.signal(signal.SIGHUP, before)
