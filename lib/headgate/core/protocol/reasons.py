"""Why a producer is throttled (throttle-protocol 3)."""

from enum import IntEnum


class Reason(IntEnum):
    """A cause by its code, under its name on the wire. What is done about it follows from the code alone.

    Source: PIP-385, throttle-protocol 3
    """

    TopicProduceQuotaExceeded = 0
    ResourceGroupProduceQuotaExceeded = 1
    ConnectionPendingMessagesBreach = 2
    MessageBufferSizeBreach = 3
    BrokerProduceQuotaExceeded = 4
    ConnectionOutboundBufferFull = 5
    ConnectionResumeCooldown = 6
    Unspecified = 99

    @property
    def is_cooperative(self) -> bool:
        """Whether the client is asked to stop, and reads go off only if it does not answer (category a)."""
        return self <= Reason.ResourceGroupProduceQuotaExceeded

    @property
    def is_told(self) -> bool:
        """Whether clients are told of it; those that are not never go on the wire."""
        return self <= Reason.BrokerProduceQuotaExceeded


COOPERATIVE = frozenset(reason for reason in Reason if reason.is_cooperative)
CONDITIONS = frozenset(Reason) - COOPERATIVE - {Reason.Unspecified}
TOLD = frozenset(reason for reason in Reason if reason.is_told)


def received(code: int | None) -> Reason:
    """The reason that a receiver understands: `Unspecified` for None, no integer, and every code not told."""
    is_code = isinstance(code, int) and not isinstance(code, bool)
    return Reason(code) if is_code and code in TOLD else Reason.Unspecified
