"""A cluster in memory that keeps its limits exactly, and an enforcer on it whose ledger is a real table.

Only for what test_cluster.py proves on a real broker as well.
"""

import json
from threading import Event

from headgate.cluster.enforce import Enforcer
from headgate.cluster.feed import Looked
from headgate.cluster.ledger import Ledger
from headgate.cluster.limits import InTheWayError
from headgate.cluster.pushing import Pushing
from headgate.cluster.running import own_name
from headgate.cluster.schemas import OF_ENFORCER
from headgate.conf.cluster import RATES, Resource
from headgate.core.clusters.demand import SECOND_US
from headgate.core.clusters.pushes import Limit
from headgate.core.clusters.shared_quota import NONE, Amounts, TopicLook
from headgate.core.topic_names import namespace_of
from headgate.errors import ClusterError
from headgate.tables.delta import Tables

DEAD = f"{own_name().rpartition(':')[0]}:{2**22 + 1}"
"""The name of a process that runs no more: Linux has no process ids above 2**22."""


class MemoryLimits:
    """Limits by path, as the text of a pair. refused: paths that neither say nor take a limit.

    in_the_way: of which resource another limit is.
    """

    def __init__(self, *namespaces):
        self.namespaces, self.set, self.refused, self.in_the_way = list(namespaces), {}, set(), None
        self.writes = []

    def averaged_us(self):
        return 0

    def paths(self, resource, direction):
        if self.in_the_way == resource.name:
            raise InTheWayError(f"{resource}: another limit is there")
        return [f"{one}/{direction}" for one in self.namespaces if resource.has_namespace(one)]

    def own_path(self, topic, direction):
        return f"{topic}/{direction}"

    def read(self, path):
        if path in self.refused:
            raise ClusterError(f"{path}: no answer in time")
        return self.set.get(path)

    def write(self, path, value):
        self.writes.append(path)
        if value is None:
            self.set.pop(path, None)
        else:
            self.set[path] = value

    def limit(self, _, value):
        return Limit(*json.loads(value))

    def wider_path(self, _):
        return None

    def lowered(self, path, value, _wider, limit):
        own = NONE if value is None else self.limit(path, value)
        return text(
            *(min((cap for cap in caps if cap is not None), default=None) for caps in zip(own, limit, strict=True))
        )

    def of_topic(self, topic, direction):
        """What holds a topic: its own limit, else its namespace's."""
        value = self.set.get(self.own_path(topic, direction)) or self.set.get(f"{namespace_of(topic)}/{direction}")
        return NONE if value is None else self.limit("", value)


def text(messages=None, of_bytes=None):
    """A limit as MemoryLimits has it."""
    return json.dumps([messages, of_bytes])


def tenant(name="acme", **quotas):
    """A resource with quotas in the words of cluster.toml."""
    return Resource("tenant", name, {RATES[word]: quota for word, quota in quotas.items()})


class EnforcedCluster:
    """Topics that get each second what they offer within their limit, and are looked at once a second.

    offered: messages a second and bytes of each, by topic without its scheme, or by topic and direction.
    ignoring: topics that no limit holds. said: what was told, with the second.
    """

    def __init__(self, folder, resources, offered, namespaces=("acme/a", "acme/b")):
        self.folder, self.resources, self.offered = folder, resources, dict(offered)
        self.limits, self.ignoring = MemoryLimits(*namespaces), set()
        self.now_us, self.said = 1000 * SECOND_US, []
        self.enforcer, self.ledger = None, None

    @property
    def second(self):
        return self.now_us // SECOND_US - 1000

    def tell(self, line):
        self.said.append((self.second, line))

    def start(self, name=DEAD):
        """A process that sets limits takes over."""
        self.ledger = Ledger(Tables(self.folder, OF_ENFORCER), name, lambda: self.now_us)
        assert self.ledger.take(Event(), self.tell)
        self.enforcer = Enforcer(self.resources, self.limits, Pushing(self.limits, self.ledger), self.tell)
        self.enforcer.go_on(self.now_us)
        return self

    def dry(self):
        """A process that sets none."""
        self.enforcer = Enforcer(self.resources, self.limits, None, self.tell)
        self.enforcer.go_on(self.now_us)
        return self

    def run(self, seconds):
        for _ in range(seconds):
            self.now_us += SECOND_US
            assert bool(self.enforcer.round(self, self.now_us)) == bool(self.offered)
        return self

    @property
    def newest_us(self):
        """When brokers answered last."""
        return self.now_us

    def take(self):
        """The looks of the last second, as a Feed has them."""
        for key, (messages, size) in self.offered.items():
            name, direction = key if isinstance(key, tuple) else (key, "in")
            topic = f"persistent://{name}"
            caps = NONE if topic in self.ignoring else self.limits.of_topic(topic, direction)
            let_in = min(messages, caps.messages or messages, (caps.bytes or messages * size) // max(size, 1))
            look = TopicLook(self.now_us - SECOND_US, self.now_us, Amounts(let_in, let_in * size))
            yield Looked(topic, direction, look, "b")

    @property
    def enforced(self):
        (one,) = self.enforcer.enforced
        return one

    def lines(self, word):
        """What was said with a word in it."""
        return [line for _, line in self.said if word in line]

    def rows(self, *actions):
        """Rows of the ledger with these actions, oldest first."""
        rows = Tables(self.folder, OF_ENFORCER).read("enforced").to_pylist()
        return sorted((row for row in rows if row["action"] in actions), key=lambda row: row["at_us"])
