"""`headgate try --recommend`: limits are looked for, tried as a whole, written to a folder and shown."""

import sys
import threading
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from headgate.conf import Conf
from headgate.core.quota.groups import UNLIMITED
from headgate.core.topic_names import tenant_of, without_partition
from headgate.engines.stops import broken_off_by_signals
from headgate.errors import InputError
from headgate.quota.usage.excess import UNITS
from headgate.report.recommend_screen import ONCE_RAISED, CourseShown, LimitShown, RecommendScreen, arrows, seconds
from headgate.report.screen import command
from headgate.tryout.bound import Bound
from headgate.tryout.folders import Loaded, loaded
from headgate.tryout.inputs import Source
from headgate.tryout.loads import Load
from headgate.tryout.recommend import FEWEST, Rates, Recommended, Runs, recommend
from headgate.tryout.recommended_conf import attached_apart, tenant_rates, topic_rates, with_tenants
from headgate.tryout.recommended_folder import write_folder
from headgate.tryout.session import Session, right
from headgate.tryout.steps import Course, Courses, lowered
from headgate.tryout.trial import FIRST_PROGRESS_S, PROGRESS_S
from headgate.tryout.waiting import Publishes, Waited, by_name

NOW, RECOMMENDED = "now", "recommended"


def recommend_limits(source: Source | None, folder: str, target: str, bound: Bound, found: Loaded) -> int:
    """Write a conf folder with the recommended limits to `target`, and show why; the exit status.

    Ctrl-C, SIGTERM and a terminal that closes break it off at once, and nothing is written. Raises HeadgateError.
    """

    def run() -> int:
        with RecommendSession(source, folder, target) as session:
            return session.recommend(found, bound)

    return broken_off_by_signals("try", run)


class RecommendSession(Session):
    """One call with --recommend. source: as of Session. folder: the conf of now, target: where the new one goes."""

    def __init__(self, source: Source | None, folder: str, target: str) -> None:
        super().__init__(source, [folder, target], None, "offered", threading.Event())
        self._folder, self._target = folder, target

    def recommend(self, found: Loaded, bound: Bound) -> int:
        """See recommend_limits. found: the one conf."""
        (conf,) = right(found).values()
        self._warn({NOW: conf})
        (before,) = self._tried({NOW: conf})
        conf = self._meant(conf)
        runs = Runs(conf, Publishes(self._trace, _with_any_group(conf)), bound, _Progress())
        recommended = recommend(conf, runs)
        if not recommended.topics and not recommended.tenants:
            raise InputError(
                f"PATH: got no topic or tenant with {FEWEST} publishes or more, of {runs.publishes.rows:,} publishes "
                f"and {before.dead_letters:,} dead letters, so that nothing can be recommended; give a longer trace"
            )
        courses = lowered(recommended, runs)
        waited = self._waited(conf, recommended, runs)
        reasons = _reasons(conf, recommended, courses, waited)
        write_folder(self._folder, Path(self._target), conf, recommended, reasons)
        written = loaded([self._target])
        self._show(conf, recommended, courses, waited, runs)
        (after,) = self._tried({RECOMMENDED: next(iter(right(written).values()))})
        self._screen.say("\nWhat that does to tenants and topics, with rows of every kind:")
        self._screen.side_by_side([before, after])
        return 0

    def _waited(self, conf: Conf, recommended: Recommended, runs: Runs) -> dict[str, Waited]:
        """How topics and tenants wait with all that the new folder says in force."""
        with TemporaryDirectory(dir=self._scratch.name) as scratch:
            folder = Path(scratch) / Path(self._target).resolve().name
            write_folder(self._folder, folder, conf, recommended, {})
            (written,) = right(loaded([str(folder)])).values()
        return _by_name(runs.waits(self._meant(written), "all of them together"))

    def _show(
        self, conf: Conf, recommended: Recommended, courses: Courses, waited: Mapping[str, Waited], runs: Runs
    ) -> None:
        bound, timeout_ms = recommended.bound, conf.settings.operator.send_timeout_ms
        screen = RecommendScreen(self._screen.console, bound.most_percent, bound.wait_ms, timeout_ms)
        screen.begin(recommended.rows, runs.count)
        names = [*recommended.tenants, *recommended.topics]
        broken = [name for name in names if not waited[name].keeps(bound)]
        today = _by_name(runs.waits(conf, "limits of today")) if broken else {}
        worse = [name for name in broken if waited[name].is_worse_than(today.get(name, Waited()))]
        rates = recommended.tenants.values()
        messages, bytes_ = (_together(pair[place] for pair in rates) for place in range(2))
        screen.broken(broken, [name for name in broken if waited[name].failed], worse, (messages, bytes_))
        tenants = {name: tenant_rates(conf, name) for name in recommended.tenants}
        topics = {name: topic_rates(conf, name) for name in recommended.topics}
        rows = _shown(tenants, recommended.tenants, recommended.tenant_loads, waited)
        title = "Tenants: quotas of the whole cluster (now: of the group, shared with others or not)"
        screen.limits(title, "tenant", rows, "resource-groups.json")
        screen.detached([_with_group(conf, *one) for one in attached_apart(conf, recommended.own)])
        if any(
            rate > peak for row in rows for rate, peak in zip(row.rates, row.busiest, strict=True) if rate is not None
        ):
            screen.lag()
        rows = _shown(topics, recommended.topics, recommended.topic_loads, waited)
        screen.limits("Topics: limits of each topic or partition", "topic", rows, "policies.json")
        few = f"of fewer than {FEWEST} publishes, or of empty ones alone"
        screen.left_out(recommended.few_tenants, f"tenants {few}")
        screen.left_out(recommended.few_topics, f"topics {few}")
        screen.left_out(recommended.unnamed, "names that conf files cannot hold")
        screen.left_out(recommended.helpless, "tenants that limits of their topics alone hold back for longer")
        if conf.settings.operator.state_key == "topic":
            screen.say('\nNo quotas of tenants: operator.state_key is "topic", with which there are no groups.')
        found = [CourseShown(one.name, one.rates, one.is_safe) for one in (*courses.topics, *courses.tenants)]
        screen.courses(found, others_hold=bool(broken))
        trace = () if self._source.is_demo else (self._source.place or self._source.path, "--traffic", "offered")
        again = command("try", *trace, "--conf-dir", self._folder, "--conf-dir", self._target)
        screen.written(self._target, again)


def _together(rates: Iterable[int | None]) -> int | None:
    """Their sum; None if any is not limited."""
    known = list(rates)
    return sum(rate for rate in known if rate is not None) if None not in known else None


def _with_group(conf: Conf, name: str, group: str) -> str:
    """What is attached to a group, with its quotas of publishes."""
    quotas = (conf.resource_groups.publish_quota(group, unit) for unit in UNITS)
    rates = [f"{quota:,} {unit}/s" for quota, unit in zip(quotas, UNITS, strict=True) if quota is not None]
    return f"{name} ({', '.join([f'group {group}', *rates])})"


def _by_name(waits: Mapping[str, Waited]) -> dict[str, Waited]:
    """Of topics or partitions, by topic and tenant."""
    return by_name(waits, without_partition) | by_name(waits, tenant_of)


def _shown(now: Rates, rates: Rates, loads: Mapping[str, Load], waited: Mapping[str, Waited]) -> list[LimitShown]:
    """Those with most publishes first."""
    return [
        LimitShown(
            *(name, now[name], rates[name], loads[name].busiest, loads[name].mean),
            *(waited[name].slow_percent, waited[name].longest_ns),
        )
        for name in sorted(rates, key=lambda name: (-loads[name].publishes, name))
    ]


def _reasons(
    conf: Conf, recommended: Recommended, courses: Courses, waited: Mapping[str, Waited]
) -> dict[str, tuple[str, str]]:
    """Why each limit is as it is, in words."""
    loads = {name: recommended.topic_loads[name] for name in recommended.topics}
    loads |= {name: recommended.tenant_loads[name] for name in recommended.tenants}
    now = {name: topic_rates(conf, name) for name in recommended.topics}
    now |= {name: tenant_rates(conf, name) for name in recommended.tenants}
    by_name_ = {course.name: course for course in (*courses.topics, *courses.tenants)}
    wait = seconds(recommended.bound.wait_ms)
    others_hold = not all(waited[name].keeps(recommended.bound) for name in loads)
    once = f" {ONCE_RAISED}" if others_hold else ""
    reasons = {}
    for name, load in loads.items():
        of_waits = f"{waited[name].slow_percent:.2f} % of publishes wait longer than {wait}"
        of_waits += f", the longest {waited[name].longest_ns / 1e9:,.1f} s"
        if waited[name].failed:
            of_waits += f", and {waited[name].failed:,} fail: limits that stay as they are hold them back as well"
        of_messages, of_bytes = (
            f"busiest second {load.busiest[place]:,}, mean {load.mean[place]:,.0f}; {of_waits}; "
            f"{_before(now[name][place], by_name_.get(name), place, once)}"
            for place in range(2)
        )
        reasons[name] = of_messages, of_bytes
    return reasons


def _before(now: int | None, course: Course | None, place: int, once: str) -> str:
    was = "no limit of its own before" if now is None else f"{now:,} before"
    rates = () if course is None else tuple(rates[place] for rates in course.rates)
    if course is None or rates[0] == rates[-1]:
        return was
    if not course.is_safe:
        return f"{was}; some publishes fail on the way down, also in steps: {arrows(rates)}"
    if len(rates) == 2:
        return f"{was}; can be lowered in one step{once}"
    return f"{was}; lower it in steps, each when nobody waits any longer: {arrows(rates)}"


def _with_any_group(conf: Conf) -> Conf:
    """A conf that takes the trace as one with quotas of tenants does."""
    return (
        conf if conf.settings.operator.state_key == "topic" else with_tenants(conf, {"any": UNLIMITED}, {"any": "any"})
    )


class _Progress:
    """Says which run it is at, from time to time."""

    def __init__(self) -> None:
        self._due_s = time.monotonic() + FIRST_PROGRESS_S

    def __call__(self, line: str) -> None:
        if (now_s := time.monotonic()) >= self._due_s:
            self._due_s = now_s + PROGRESS_S
            sys.stderr.write(f"try: {line}\n")
