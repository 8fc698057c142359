"""What to run next, once it is known who was throttled: commands with names and times filled in."""

from collections.abc import Iterator

from headgate.quota.usage.topic_view import tenant_name
from headgate.report.screen import command, plain, quoted, zulu
from headgate.report.throttling.blame import Throttling
from headgate.report.throttling.dispatch_throttling import held_back
from headgate.tables.sums import Summed

QUESTION = "SELECT limiter, count(*) AS marks FROM marks WHERE action = 'mark' GROUP BY limiter ORDER BY marks DESC"
_OF_READS = (
    "SELECT event_time, sum(reads) AS reads, sum(held_by_broker + held_by_topic + held_by_subscription + "
    "held_by_group) AS held FROM dispatch_decisions GROUP BY event_time ORDER BY held DESC LIMIT 20"
)
_TOPICS_OF = (
    "SELECT topic, sum(messages) AS messages, sum(bytes) AS bytes, sum(publishes) AS publishes, "
    "sum(throttled_publishes) AS throttled, sum(failed_publishes) AS failed "
    "FROM topic_usage WHERE {} GROUP BY topic ORDER BY throttled DESC"
)


def next_steps(throttling: Throttling, tables: Summed, output: str, shared: str, under: str = "") -> Iterator[str]:
    """Lines about who has most of the excess at whose cost most was lost, or who was throttled most.

    Where no publish was throttled, about dispatches that were held back.

    output: where the tables are; shared: those of groups. under: which conf, in words.
    """
    held = [row for row in throttling.tenants if row.is_held]
    victims = [row for row in held if row.is_victim and (row.failed is None or row.lost)]
    victim = max(victims, key=lambda row: row.lost, default=None)
    culprit = None if victim is None else victim.fault.culprit
    most = min(held, key=lambda row: (culprit is None or row.name != culprit.name, row.is_victim), default=None)
    if most is None or most.first is None or most.last is None:
        of_reads, question = (" of reads that were held back", _OF_READS) if held_back(tables) else ("", QUESTION)
        yield f'Try{of_reads}: {command("sql", output)} "{question}"'
        return
    name, at, when = plain(most.name), most.worst or most.first, "at its worst second"
    if culprit is not None and most.name == culprit.name:
        at, when = culprit.at, f"when {name} sent most above its share"
    where = f"tenant = {quoted(most.name)} AND event_time BETWEEN '{zulu(most.first)}' AND '{zulu(most.last)}'"
    yield f"\nWhat to run next, about {name}{under}: who used what {when}, and {name}'s topics"
    yield f"  {command('usage', shared)} --by tenant --epochs 1 --at {zulu(at)}"
    yield f'  {command("sql", output)} "{_TOPICS_OF.format(where)}"'
    if victim is not None and victim is not most and victim.worst not in {None, at}:
        other = plain(victim.name)
        yield f"and about {other}, a victim: who used what {other} lacked at its worst second"
        yield f"  {command('usage', shared)} --by tenant --epochs 1 --at {zulu(victim.worst)}"
    asked = (victim or most).name
    topic = next((row for row in throttling.topics if tenant_name(row.name) == asked), None)
    if topic is not None and topic.first is not None and topic.last is not None:
        span = f"--from {zulu(topic.first)} --to {zulu(topic.last)}"
        yield f"and why {plain(topic.name)} was held, and what would have helped"
        yield f"  {command('why', plain(topic.name), output)} {span}"
