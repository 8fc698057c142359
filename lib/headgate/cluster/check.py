"""`headgate cluster check`: what would be collected and set on a cluster, and what is in the way. Changes nothing."""

import argparse
from collections.abc import Callable, Sequence

from headgate.cluster.brokers import Cluster
from headgate.cluster.enforce import shown
from headgate.cluster.feed import has_counters_of
from headgate.cluster.groups import Groups
from headgate.cluster.ledger import Ledger
from headgate.cluster.limits import Limits
from headgate.cluster.running import cluster_of, limits_of
from headgate.cluster.schemas import OF_ENFORCER
from headgate.conf.cluster import Client, load_cluster
from headgate.core.clusters.ledger import Entry, operators
from headgate.errors import ClusterError
from headgate.folders import folder_at
from headgate.stores import check_reachable
from headgate.tables.delta import Tables

PROBLEMS = 1
"""Exit status where something is in the way."""


def check(arguments: argparse.Namespace, tell: Callable[[str], None]) -> int:
    """Tell all of it; PROBLEMS if something is in the way.

    Raises ConfError, InputError where --output cannot be reached, and ClusterError without any broker, or if --output
    is of another cluster.
    """
    conf = load_cluster(arguments.cluster)
    if (output := arguments.output) is not None:
        check_reachable(output, "--output")
    cluster, limits = cluster_of(conf), limits_of(conf)
    name = cluster.name()
    tell(f"cluster {name}, {conf.settings.kind}")
    tables = set[str]() if output is None else set(folder_at(output).names())
    if "broker_looks" in tables:
        has_counters_of(output, name)
    problems, topics = _check_brokers(cluster, conf.settings.servers, tell)
    entries: dict[str, Entry] = {}
    has_ledger = "enforced" in tables
    if output is not None and not has_ledger:
        tell(f"--output {output} has no table enforced: no limits were set from there")
    if has_ledger:
        entries = Ledger(Tables(output, OF_ENFORCER), "check", lambda: 0).open()
    resources = conf.resources
    if conf.settings.groups and "rg_groups" in tables:
        resources = Groups(output, 0).resources()
    for resource in resources:
        if isinstance(resource, Client) and not any(map(resource.has, topics)):
            remedy = "correct topic_prefix, or " if topics else ""
            seen = f"no topic is seen that begins with {resource.topic_prefix}"
            tell(f"{resource}: {seen}; {remedy}give Describe on topics")
            problems += 1
        for direction in sorted({rate.direction for rate in resource.quotas}):
            try:
                paths = limits.paths(resource, direction)
            except ClusterError as error:
                tell(str(error))
                problems += 1
                continue
            tell(f"{resource.in_words(direction)}: places for its limit: {len(paths)}")
            for path in paths:
                problems += not _check_path(limits, path, entries.get(path), tell, has_ledger=has_ledger)
    if not resources:
        where = "attached group in --output" if conf.settings.groups else "[[resource]] in cluster.toml"
        tell(f"no {where}: counters can be collected, and nothing is enforced")
    tell(f"{problems} problem{'' if problems == 1 else 's'}")
    return PROBLEMS if problems else 0


def _check_brokers(cluster: Cluster, servers: Sequence[str], tell: Callable[[str], None]) -> tuple[int, set[str]]:
    """How many do not answer, and the topics of the others. servers: what cluster.toml names beside."""
    problems, topics, brokers = 0, set[str](), cluster.brokers()
    for server in sorted(set(servers).difference(brokers)):
        tell(f"{server}: no broker has this name now; it is down, or the cluster calls it otherwise")
    for broker in brokers:
        try:
            look = cluster.look(broker)
        except ClusterError as error:
            tell(f"broker {broker}: {error}")
            problems += 1
        else:
            version = "" if look.version is None else f"version {look.version}, "
            cache = "" if look.cache is None else f", entry cache {look.cache.used_bytes:,} B"
            topics |= look.topics
            tell(f"broker {broker}: {version}{len(look.topics):,} topics would be collected{cache}")
    return problems, topics


def _check_path(
    limits: Limits, path: str, entry: Entry | None, tell: Callable[[str], None], *, has_ledger: bool
) -> bool:
    """Tell whose limit is there; False if that cannot be said. has_ledger: else it may be one of headgate's."""
    try:
        current = limits.read(path)
        own = operators(current, entry)
    except ClusterError as error:
        tell(f"  {path}: {error}")
        return False
    if current is None:
        words = "no limit"
    elif current != own:
        before = "no limit" if own is None else shown(limits.limit(path, own))
        words = f"{shown(limits.limit(path, current))}, set by headgate; before it: {before}"
    elif has_ledger:
        words = f"{shown(limits.limit(path, current))}, the operator's: the upper bound, put back at the end"
    else:
        words = f"{shown(limits.limit(path, current))}, the operator's, or headgate's: --output tells"
    tell(f"  {path}: {words}")
    return True
