"""Every view with its address: what the router, the navigation and the description at /openapi.json go by."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from headgate.service.pages import (
    cache,
    clusters,
    connections,
    groups,
    now,
    replays,
    tenants,
    topic,
    topics,
    why,
    why_others,
)
from headgate.service.pages.read import Read
from headgate.service.pages.span import Asked
from headgate.service.pages.words import topic_of

_USAGE = ("topic_usage", "marks", "dispatch_decisions", "rg_groups", "rg_attachments", "rg_usage")
_GROUPS = ("rg_groups", "rg_attachments", "rg_usage", "rg_limits", "rg_members")
Given = Mapping[str, str]
"""Parameters of the path and of the query, the path's first."""


class Query(NamedTuple):
    """A parameter of the query. about: what it is, in a few words."""

    name: str
    about: str
    is_required: bool = False


@dataclass(frozen=True)
class View:
    """title: of the page; a name in the path follows it. section: that of the navigation. path: as starlette has it;
    template: its file without .html. tables: a page stays as it is until one of them changes; empty: any. has_range:
    whether from, to and last count. query: a parameter that it alone has. reads: whether it needs the output at all.
    """

    template: str
    title: str
    section: str
    path: str
    summary: str
    tables: tuple[str, ...]
    view: Callable[[Read, Asked, Given], object]
    has_range: bool = True
    query: Query | None = None
    reads: bool = True

    @property
    def parameter(self) -> str | None:
        """The name of the path's parameter."""
        return self.path.partition("{")[2].partition("}")[0].partition(":")[0] or None


VIEWS = (
    View("now", "Now", "Now", "/now", "Who is held now, and who uses how much of its quota", _USAGE,
         lambda read, asked, _: now.now(read, asked)),
    View("topics", "Topics", "Topics", "/topics", "Topics with publishes; q: a part of the name", _USAGE,
         lambda read, asked, given: topics.all_topics(read, asked, given.get("q", "")[:300]),
         query=Query("q", "Part of the name")),
    View("topic", "Topic", "Topics", "/topics/{topic:path}", "A topic with its limits and marks", (*_USAGE, "control"),
         lambda read, asked, given: topic.topic_page(read, asked, topic_of(given["topic"]))),
    View("why", "Why", "Topics", "/why/{topic:path}", "Why a topic is held, whose fault that is, and what would help",
         why.TABLES, lambda read, asked, given: why.why_page(read, asked, topic_of(given["topic"]))),
    View("why_subscription", "Why, subscription", "Topics", "/why-subscription/{topic:path}",
         "Whether a subscription's backlog is due to throttling or to slow consumers", why_others.OF_SUBSCRIPTION,
         lambda read, asked, given: why_others.subscription_page(
             read, asked, topic_of(given["topic"]), given.get("subscription", "")),
         query=Query("subscription", "Its name", is_required=True)),
    View("why_connection", "Why, connection", "Connections", "/why-connection/{connection:path}",
         "Why a connection, as BROKER/CONNECTION, is held, and which topics are held with it", why_others.OF_CONNECTION,
         lambda read, asked, given: why_others.connection_page(read, asked, given["connection"])),
    View("why_cache", "Why, entry cache", "Entry cache", "/why-cache/{topic:path}",
         "Why entries of a topic left the entry cache, and which topics took the room", why_others.OF_CACHE,
         lambda read, asked, given: why_others.cache_page(read, asked, topic_of(given["topic"]))),
    View("tenants", "Tenants", "Tenants", "/tenants", "Tenants, by share of their quota", _USAGE,
         lambda read, asked, _: tenants.all_tenants(read, asked)),
    View("tenant", "Tenant", "Tenants", "/tenants/{tenant:path}", "A tenant with its topics", _USAGE,
         lambda read, asked, given: tenants.one_tenant(read, asked, given["tenant"])),
    View("groups", "Groups", "Groups", "/groups", "Quotas, their use, and how they changed", _GROUPS,
         lambda read, asked, _: groups.all_groups(read, asked)),
    View("group", "Group", "Groups", "/groups/{group:path}", "A group with each broker's share", _GROUPS,
         lambda read, asked, given: groups.one_group(read, asked, given["group"])),
    View("connections", "Connections", "Connections", "/connections", "Connections that conditions hold",
         ("marks", "connections"), lambda read, asked, _: connections.connections(read, asked)),
    View("cache", "Entry cache", "Entry cache", "/cache", "Hits, size and evictions of entry caches",
         ("cache_metrics",), lambda read, asked, _: cache.cache(read, asked)),
    View("clusters", "Clusters", "Clusters", "/clusters", "What was collected, pushed and not enforceable",
         ("broker_looks", "enforced", "counters"), lambda read, asked, _: clusters.clusters(read, asked)),
    View("replays", "Replays and sweeps", "Replays and sweeps", "/replays", "Replays and sweeps below the output", (),
         lambda read, asked, _: replays.replays(read, asked), has_range=False),
)  # fmt: skip
SECTIONS = tuple((view.section, view.path) for view in VIEWS if view.section == view.title)
REASONS = View(
    "reasons",
    "Reasons",
    "Reasons",
    "/reasons",
    "What each reason means, and what to do",
    (),
    lambda _read, _asked, _given: why.Reasons(),
    has_range=False,
    reads=False,
)
"""Of no table, so that it is none of VIEWS."""
