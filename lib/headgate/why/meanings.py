"""What each reason means, and what to do: docs/reasons.md and the page are made of it."""

from pathlib import Path
from typing import Final, NamedTuple

from headgate.core.reasons import HeldReason


class Meaning(NamedTuple):
    """title: in a few words. means: sentences. to_do: the first is the best."""

    title: str
    means: tuple[str, ...]
    to_do: tuple[str, ...] = ()


MEANINGS: Final = {
    HeldReason.TOPIC_PUBLISH_RATE_MESSAGES: Meaning(
        "the topic's publish limit, messages",
        (
            (
                "The topic's publish limit in messages had run out: more came than its rate and the second that it "
                "saves up."
            ),
            (
                "The limit is the topic's policy, else its namespace's, else the default of `broker.conf`; `headgate "
                "why` shows which one applies."
            ),
        ),
        (
            (
                "If the traffic is wanted: raise that limit, or set one for the topic alone in `policies.json`. "
                "`headgate why` says which would have been enough."
            ),
            "If not: ask who sends it; the answer lists the topic's producers.",
            "More partitions help, since each partition has the whole limit.",
        ),
    ),
    HeldReason.TOPIC_PUBLISH_RATE_BYTES: Meaning(
        "the topic's publish limit, bytes",
        (
            "The topic's publish limit in bytes had run out: more came than its rate and the second that it saves up.",
            "Which limit applies is as for TOPIC_PUBLISH_RATE_MESSAGES.",
        ),
        (
            "Compress batches, or raise the limit in bytes.",
            "If the traffic is not wanted, ask who sends it; the answer lists the topic's producers.",
        ),
    ),
    HeldReason.TOPIC_PUBLISH_RATE: Meaning(
        "the topic's publish limit",
        ("It had run out. The unit is not known: the protocol and some tables do not say it.",),
        ("See TOPIC_PUBLISH_RATE_MESSAGES and TOPIC_PUBLISH_RATE_BYTES.",),
    ),
    HeldReason.BROKER_PUBLISH_RATE_MESSAGES: Meaning(
        "the broker's publish limit, messages",
        (
            "The publish limit of the whole broker in messages had run out.",
            "Every topic of the broker can be held, also one that sends little.",
        ),
        (
            "A victim cannot help itself: see who filled the limit.",
            (
                "Move one of the largest topics to another broker; `headgate why` names one that is enough, if there "
                "is one."
            ),
            "Give the culprit a limit of its own, or raise `brokerPublisherThrottlingMaxMessageRate`.",
        ),
    ),
    HeldReason.BROKER_PUBLISH_RATE_BYTES: Meaning(
        "the broker's publish limit, bytes",
        ("The publish limit of the whole broker in bytes had run out; every topic of the broker can be held.",),
        (
            "Move one of the largest topics elsewhere; `headgate why` names one that is enough, if there is one.",
            "Give the culprit a limit of its own, or raise `brokerPublisherThrottlingMaxByteRate`.",
        ),
    ),
    HeldReason.BROKER_PUBLISH_RATE: Meaning(
        "the broker's publish limit",
        ("It had run out. The unit is not known: the protocol and some tables do not say it.",),
        ("See BROKER_PUBLISH_RATE_MESSAGES and BROKER_PUBLISH_RATE_BYTES.",),
    ),
    HeldReason.GROUP_QUOTA_MESSAGES: Meaning(
        "the group's quota, messages",
        (
            "The quota of the topic's resource group in messages had run out on its broker.",
            "All topics of the group share it; a broker has a share that follows the traffic.",
        ),
        (
            "If the tenant is a victim: give the culprit a group of its own, as `headgate why` proposes.",
            "If the tenant is the cause: raise the quota of the group, or send less.",
            (
                "If it is nobody's fault, and fits into the quota but not into the shares: the shares lag behind "
                "traffic that moves between brokers."
            ),
        ),
    ),
    HeldReason.GROUP_QUOTA_BYTES: Meaning(
        "the group's quota, bytes",
        ("The quota of the topic's group in bytes had run out on its broker; all topics of the group share it.",),
        (
            "If the tenant is a victim: give the culprit a group of its own, as `headgate why` proposes.",
            "If the tenant is the cause: raise the quota in bytes, compress batches, or send less.",
        ),
    ),
    HeldReason.GROUP_QUOTA: Meaning(
        "the group's quota",
        ("It had run out. The unit is not known: the protocol and some tables do not say it.",),
        ("See GROUP_QUOTA_MESSAGES and GROUP_QUOTA_BYTES.",),
    ),
    HeldReason.GROUP_BLOCKED: Meaning(
        "the group is blocked: its quota is 0",
        (
            "A quota of the topic's resource group is 0, which lets nothing in.",
            "Set another one with `headgate groups`, or attach another group.",
        ),
    ),
    HeldReason.CONNECTION_PENDING_REQUESTS: Meaning(
        "too many requests in flight on the connection",
        (
            "More publishes of one connection were in flight than `maxPendingPublishRequestsPerConnection`.",
            (
                "The broker stores them more slowly than the client sends: look at the latency of the bookies, or use "
                "several connections."
            ),
        ),
    ),
    HeldReason.IO_THREAD_PENDING_BYTES: Meaning(
        "too many bytes in flight on the IO thread",
        (
            "More bytes were in flight on the broker's IO thread than its part of `maxMessagePublishBufferSizeInMB`.",
            (
                "All connections of the thread are held. Raise the buffer if there is memory, or look at the latency "
                "of the bookies."
            ),
        ),
    ),
    HeldReason.CONNECTION_OUTBOUND_BUFFER: Meaning(
        "the connection's outbound buffer is full",
        (
            "The client reads more slowly than the broker writes to it, so that the outbound buffer was full.",
            "Look at the client's network and at how long its listeners take.",
        ),
    ),
    HeldReason.CONNECTION_COOLDOWN: Meaning(
        "the cooldown after a full outbound buffer",
        (
            (
                "After an outbound buffer was full, the connection may send only some commands at first "
                "(`pulsarChannelPauseReceivingCooldown...`)."
            ),
            "It ends by itself.",
        ),
    ),
    HeldReason.SHARED_CONNECTION: Meaning(
        "another producer on the same connection",
        (
            "A producer of another topic on the same connection was held; a broker stops reading the whole connection.",
            (
                "Give the producers connections of their own (`connectionsPerBroker` of the client), or use clients "
                "that understand the throttle protocol."
            ),
        ),
    ),
    HeldReason.BROKER_DISPATCH_RATE: Meaning(
        "the broker's dispatch limit",
        ("The dispatch limit of the broker had no permit when a read came; all subscriptions of the broker share it.",),
        ("Raise `dispatchThrottlingRateInMsg` or `dispatchThrottlingRateInByte`, or move topics away.",),
    ),
    HeldReason.TOPIC_DISPATCH_RATE: Meaning(
        "the topic's dispatch limit",
        ("The dispatch limit of the topic had no permit when a read came; its subscriptions share it.",),
        ("Raise the topic's dispatch rate in `policies.json`; more partitions help, since each has the whole rate.",),
    ),
    HeldReason.SUBSCRIPTION_DISPATCH_RATE: Meaning(
        "the subscription's dispatch limit",
        (
            "The dispatch limit of the subscription, or replicator, had no permit.",
            "Raise it if its consumers can keep up; each subscription has the whole limit.",
        ),
    ),
    HeldReason.GROUP_DISPATCH_QUOTA: Meaning(
        "the group's dispatch quota",
        (
            "The dispatch quota of the topic's resource group had no permit.",
            "headgate usage shows who shares the group.",
        ),
    ),
    HeldReason.SLOW_CONSUMER: Meaning(
        "slow consumers",
        (
            "Nothing held the subscription: its consumers asked for less than was published.",
            "Add consumers, or make them faster; raising limits does not help.",
        ),
    ),
    HeldReason.CACHE_SIZE: Meaning(
        "no room in the entry cache",
        (
            "Entries left the cache because there was no room for all of them.",
            "`headgate why --cache` shows which topics took the room; a sweep shows what a larger cache would bring.",
        ),
    ),
    HeldReason.CACHE_AGE: Meaning(
        "too old for the entry cache",
        (
            (
                "Entries left the cache because they were older than `managedLedgerCacheEvictionTimeThresholdMillis`, "
                "before everybody had read them."
            ),
        ),
    ),
    HeldReason.NOT_HELD: Meaning(
        "not held",
        ("No limit held anything at that time.",),
    ),
}
_PAGE: Final = Path(__file__).parents[3] / "docs" / "reasons.md"


def page() -> str:
    """docs/reasons.md."""
    lines = [
        "# Reasons",
        "",
        (
            "Why something is held is one of these names, the same in [headgate why](why.md), over HTTP, on the page "
            "of [headgate serve](serve.md), as label `reason` of metrics, and in the errors of the [client](client.md)."
        ),
    ]
    for reason, meaning in MEANINGS.items():
        lines += ["", f"## {reason}", "", *meaning.means]
        lines += ["", *(f"* {one}" for one in meaning.to_do)] if meaning.to_do else []
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    _PAGE.write_text(page(), "utf-8")
