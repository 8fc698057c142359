"""What the broker side of the throttle protocol decides by, from headgate.toml and broker.conf."""

from headgate.conf.conf import Conf
from headgate.core.protocol.settings import BrokerSettings

_NOT_THE_MACHINES = {"watermark_delay_ms", "fan_out"}


def protocol_settings(conf: Conf) -> BrokerSettings:
    """The profile, overridden by what [protocol] says; the wait for receipts is broker.conf's. throttle-protocol 4"""
    said = conf.settings.protocol.model_dump(exclude_none=True, exclude=_NOT_THE_MACHINES)
    return BrokerSettings.of(said | {"throttleProducerReceiptWaitTimeMillis": conf.broker.throttle_receipt_wait_ms})
