"""A producer in an event loop: sends are awaited, and closing does not block the loop."""

import asyncio

import pytest

from headgate.client import ProducerClosedError, SendRejectedError
from unit.client.doubles import SOON_S, scene_of


def test_sends_leave_in_the_order_of_the_calls_and_each_is_awaited():
    async def program(scene):
        async with scene.producer as producer:
            futures = [producer.send_async(payload, key=b"k") for payload in "abc"]
            assert scene.library.written == ["a", "b", "c"]
            scene.library.ack("c", "a")
            scene.library.nack("b", ValueError("too big"))
            return await asyncio.gather(*futures, return_exceptions=True)

    with scene_of() as scene:
        first, second, third = asyncio.run(program(scene))
    assert (first, type(second), third) == ("a stored", SendRejectedError, "c stored")


def test_the_loop_goes_on_while_the_producer_closes():
    """Here it is the loop that acknowledges what close waits for."""

    async def program(scene):
        loop, is_flushed = asyncio.get_running_loop(), asyncio.Event()
        scene.library.flush = lambda _: loop.call_soon_threadsafe(is_flushed.set)

        async def acknowledge():
            await is_flushed.wait()
            scene.library.ack("a")

        task = asyncio.create_task(acknowledge())
        async with scene.producer as producer:
            future = producer.send_async("a")
        task.cancel()
        return await future

    with scene_of() as scene:
        assert asyncio.run(program(scene)) == "a stored"


def test_an_exception_in_the_body_of_async_with_waits_for_no_message():
    async def program(scene):
        async with scene.producer as producer:
            scene.library.flush = lambda _: scene.library.ack("a")
            futures.append(producer.send_async("a"))
            raise ZeroDivisionError

    async def outcome(scene):
        (raised,) = await asyncio.gather(program(scene), return_exceptions=True)
        (ended,) = await asyncio.gather(*futures, return_exceptions=True)
        return type(raised), type(ended)

    futures = []
    with scene_of() as scene:
        assert asyncio.run(outcome(scene)) == (ZeroDivisionError, ProducerClosedError)
        assert scene.library.calls == ["close"]


def test_who_cancels_the_future_does_not_cancel_the_message(caplog):
    async def program(scene):
        scene.producer.on_command(1, 0, 0, 50)
        future = scene.producer.send_async("a")
        future.cancel()
        scene.at(50)
        scene.library.ack("a")
        await asyncio.to_thread(scene.producer.close, SOON_S)
        assert future.cancelled()

    with scene_of() as scene:
        asyncio.run(program(scene))
        assert scene.library.written == ["a"]
    assert not caplog.records


def test_nothing_is_sent_outside_of_a_loop():
    with scene_of() as scene:
        with pytest.raises(RuntimeError, match="no running event loop"):
            scene.producer.send_async("a")
        assert scene.library.written == []
