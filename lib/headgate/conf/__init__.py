"""Settings of a headgate deployment: headgate.toml, Pulsar's broker.conf, rate policies and resource groups."""

from headgate.conf.broker import BROKER_KEYS, BrokerConf
from headgate.conf.checks import check_streaming
from headgate.conf.conf import Conf
from headgate.conf.limits import (
    AttachmentRow,
    ConfRow,
    ConnectionLimitRow,
    DispatchLimitRow,
    LevelLimitRow,
    LimitRow,
    SubscribeLimitRow,
    UnloadLimitRow,
    conf_limits,
    connection_limits,
    dispatch_limits,
    group_attachments,
    level_limits,
    publish_limits,
    subscribe_limits,
    unload_limits,
)
from headgate.conf.load import load_conf, load_resource_groups
from headgate.conf.policies import DispatchRate, Policies, PublishRate, RatePolicies, SubscribeRate
from headgate.conf.protocol import protocol_settings
from headgate.conf.resource_groups import ResourceGroup, ResourceGroups
from headgate.conf.settings import (
    InputSettings,
    KafkaSettings,
    LiveSettings,
    MetricsSettings,
    OperatorSettings,
    ProtocolSettings,
    Settings,
    TriggerSettings,
)

__all__ = [
    "BROKER_KEYS",
    "AttachmentRow",
    "BrokerConf",
    "Conf",
    "ConfRow",
    "ConnectionLimitRow",
    "DispatchLimitRow",
    "DispatchRate",
    "InputSettings",
    "KafkaSettings",
    "LevelLimitRow",
    "LimitRow",
    "LiveSettings",
    "MetricsSettings",
    "OperatorSettings",
    "Policies",
    "ProtocolSettings",
    "PublishRate",
    "RatePolicies",
    "ResourceGroup",
    "ResourceGroups",
    "Settings",
    "SubscribeLimitRow",
    "SubscribeRate",
    "TriggerSettings",
    "UnloadLimitRow",
    "check_streaming",
    "conf_limits",
    "connection_limits",
    "dispatch_limits",
    "group_attachments",
    "level_limits",
    "load_conf",
    "load_resource_groups",
    "protocol_settings",
    "publish_limits",
    "subscribe_limits",
    "unload_limits",
]
