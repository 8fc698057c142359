"""What a conf directory says, all files together."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from headgate.conf.broker import BrokerConf
from headgate.conf.policies import Policies
from headgate.conf.resource_groups import ResourceGroups
from headgate.conf.settings import Settings
from headgate.core.quota.settings import QuotaSettings


@dataclass(frozen=True, slots=True)
class Conf:
    """Everything that the conf directory says; immutable, and complete without any file.

    `cache` has what broker.conf gives to keys of the entry cache, of which `CacheSettings.of` makes its settings.
    `warnings` are finished lines for a job to print: they change nothing. `groups_file` is where `resource_groups` are
    read from, whether or not a file is there; None without a directory.
    """

    settings: Settings = field(default_factory=Settings)
    broker: BrokerConf = field(default_factory=BrokerConf)
    policies: Policies = field(default_factory=Policies)
    resource_groups: ResourceGroups = field(default_factory=ResourceGroups)
    quota: QuotaSettings = field(default_factory=QuotaSettings)
    cache: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    groups_file: str | None = field(default=None, compare=False)
