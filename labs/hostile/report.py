"""Compares the runs with and without the hostile tenant, and checks limits."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

from labs.hostile import verdict
from labs.hostile.attacks.every import ATTACKS, EARLY
from labs.hostile.environment import HOSTILE, HOSTILE_NODES
from labs.hostile.honest import LATE_AT, NAMESPACES, STUCK
from labs.hostile.run import Run, Seen, Size
from tests.behaviour.product import total

MIB: Final = 120
NAMED_WITHIN_S: Final = 10.0
SHOWN_WITHIN_S: Final = 5.0
GPUS_PER_NODE: Final = 8
REQUESTS_OF_A_START: Final = 8
"""Sequential requests."""


@dataclass(frozen=True, kw_only=True)
class Beside:
    """Inputs of limits: the figure of the run without the hostile tenant, and the hostile tenant's activity."""

    alone: float
    writes: int
    size: Size
    server_s: float
    """API server latency of a minimal request."""
    waited_s: float
    """Time of the second start in which the aggregator had no processor: the machine is busy, not the aggregator."""


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A row of the table."""

    name: str
    of: Callable[[Seen, Run], float]
    most: Callable[[Beside], float] | None = None
    """The limit; None for no limit."""


FIGURES: Final = (
    Figure(name="peak memory, MiB", of=lambda seen, _: seen.meter.peak_mib, most=lambda _: MIB),
    Figure(
        name="CPU, s",
        of=lambda seen, _: seen.meter.cpu_s,
        most=lambda beside: 2 * beside.alone + 0.004 * beside.writes,
    ),
    Figure(
        name="ledger, kB",
        of=lambda seen, _: seen.ledger_bytes / 1000,
        most=lambda beside: 1.5 * beside.alone + 1.5 * beside.writes,
    ),
    Figure(
        name="log, kB",
        of=lambda seen, _: len(seen.log) / 1000,
        most=lambda beside: beside.alone + 32,
    ),
    Figure(
        name="scrape, ms with a processor (median)",
        of=lambda seen, _: seen.meter.scrape_ms,
        most=lambda beside: 3 * beside.alone + 25,
    ),
    Figure(
        name="scrape, ms with a processor (p99)",
        of=lambda seen, _: seen.meter.scrape_p99_ms,
        most=lambda beside: 3 * beside.alone + 1000,
    ),
    Figure(
        name="scrape, kB (largest)",
        of=lambda seen, _: seen.meter.scrape_bytes / 1000,
        most=lambda beside: 1.5 * beside.alone + 1.5 * beside.size.tenants,
    ),
    Figure(name="API server answers, s (p99)", of=lambda _, run: run.yardstick.slowest_s),
    Figure(
        name="second start, s",
        of=lambda seen, _: seen.ready_s,
        most=lambda beside: beside.alone + 4 + REQUESTS_OF_A_START * beside.server_s + beside.waited_s,
    ),
    Figure(name="  without a processor, s", of=lambda seen, _: seen.waited_s),
    Figure(name="API requests", of=lambda seen, _: len(seen.requests)),
    Figure(
        name="  lists of all pods",
        of=lambda seen, _: seen.requests.lists_of_pods(),
        most=lambda beside: beside.alone,
    ),
    Figure(
        name="  watches of all pods",
        of=lambda seen, _: seen.requests.watches_of_pods(),
    ),
    Figure(
        name="  unexpected requests",
        of=lambda seen, _: len(list(unexpected_requests(seen))),
        most=lambda _: 0,
    ),
    Figure(
        name="  owner lookups",
        of=lambda seen, _: seen.requests.lookups(),
        most=lambda beside: beside.alone + beside.writes,
    ),
    Figure(
        name="  forbidden owner lookups",
        of=lambda seen, _: seen.requests.forbidden_lookups(),
        most=lambda beside: beside.alone + 40,
    ),
    Figure(
        name="  longest path, bytes",
        of=lambda seen, _: seen.requests.bytes_of_paths(),
        most=lambda _: 1000,
    ),
    Figure(
        name="job named after, s (largest)",
        of=lambda seen, _: max(seen.jobs.delays_s.values(), default=0),
        most=lambda beside: beside.alone + NAMED_WITHIN_S + beside.server_s + beside.waited_s,
    ),
    Figure(name="jobs never named", of=lambda seen, _: len(seen.jobs.unnamed()), most=lambda _: 0),
    Figure(
        name="event to /metrics, s (median)",
        of=lambda seen, _: middle(seen.meter.latency.seconds),
    ),
    Figure(
        name="event to /metrics, s (largest)",
        of=lambda seen, _: max(seen.meter.latency.seconds, default=0),
        most=lambda beside: beside.alone + SHOWN_WITHIN_S + beside.server_s + beside.waited_s,
    ),
    Figure(
        name="honest GPU-s, truth",
        of=lambda _, run: sum(verdict.true_seconds(run.record).values()),
    ),
    Figure(
        name="ledger rows that differ from the truth",
        of=lambda seen, run: len(list(verdict.ledger_deviations(seen.meter.product, run.record))),
        most=lambda _: 0,
    ),
    Figure(
        name="counters that differ from the truth",
        of=lambda seen, run: len(list(verdict.counter_deviations(seen.samples, run.record))),
        most=lambda _: 0,
    ),
    Figure(
        name="overcount of honest counters, GPU-s", of=lambda seen, run: verdict.overcount(seen.samples, run.record)
    ),
    Figure(name="largest reconciliation difference, GPU-s", of=lambda seen, _: seen.meter.difference, most=lambda _: 0),
    Figure(
        name="GPU-s of the hostile tenant",
        of=lambda seen, _: verdict.hostile_gpu_seconds(seen.samples),
        most=lambda beside: (HOSTILE_NODES + 1) * GPUS_PER_NODE * (beside.size.lasts_s + 30),
    ),
    Figure(
        name="GPUs of the queued Job not charged",
        of=lambda seen, _: verdict.uncharged_gpus(seen.meter.product),
        most=lambda _: 0,
    ),
    Figure(
        name="smallest change of a wait counter",
        of=lambda seen, _: verdict.coarsest_wait(seen.samples),
        most=lambda _: 1 / 1024,
    ),
    Figure(name="deadlocked gangs not found", of=lambda seen, _: abs(2 - seen.meter.deadlocked), most=lambda _: 0),
    Figure(
        name="waiting pods that are not charged",
        of=lambda seen, _: total(seen.samples, "gputally_wait_not_charged_pods"),
    ),
    Figure(
        name="honest questions not answered",
        of=lambda seen, _: len(seen.questions.unanswered),
        most=lambda _: 0,
    ),
    Figure(name="honest questions, s (largest)", of=lambda seen, _: seen.questions.slowest_s),
    Figure(name="hostile questions rejected", of=lambda seen, _: seen.rejected),
    Figure(
        name="objects beyond limits",
        of=lambda seen, _: total(seen.samples, "gputally_objects_beyond_limits_total"),
    ),
    Figure(
        name="label overflows",
        of=lambda seen, _: total(seen.samples, "gputally_label_overflows_total"),
    ),
    Figure(
        name="objects skipped or malformed",
        of=lambda seen, _: (
            total(seen.samples, "gputally_skipped_objects_total")
            + total(seen.samples, "gputally_watch_malformed_objects_total")
        ),
    ),
    Figure(
        name="CSV cells that are formulas",
        of=lambda seen, _: len(list(verdict.formulas(seen.cells))),
        most=lambda _: 0,
    ),
    Figure(name="CSV cells with a formula as text", of=lambda seen, _: verdict.disarmed(seen.cells)),
    Figure(
        name="agent pulls",
        of=lambda seen, _: total(seen.samples, "gputally_agent_pulls_total"),
        most=lambda _: 0,
    ),
)


def unexpected_requests(seen: Seen) -> Iterator[str]:
    """Unexpected API requests."""
    return seen.requests.unexpected({*NAMESPACES, STUCK, HOSTILE})


def middle(values: list[float]) -> float:
    return sorted(values)[len(values) // 2] if values else 0


def writes(run: Run) -> int:
    """Number of accepted writes of the hostile tenant, without the pods created by its Jobs."""
    return sum(run.messages[-1]["accepted"].values()) if run.messages else 0


def findings(alone: Run, beside: Run, size: Size) -> list[str]:
    """All violations, as text."""
    found = []
    known = partial(Beside, writes=writes(beside), size=size, server_s=beside.yardstick.slowest_s)
    for name, seen in beside.seen.items():
        for figure in FIGURES:
            value, before = figure.of(seen, beside), figure.of(alone.seen[name], alone)
            most = figure.most(known(alone=before, waited_s=seen.waited_s)) if figure.most else value
            if value > most:
                found.append(f"{name}: {figure.name} is {value:,.6g}, {before:,.6g} alone; at most {most:,.6g}")
        found += [f"{name}: {each}" for each in evidence(seen, beside)]
    return found + [f"alone: {each}" for seen in alone.seen.values() for each in evidence(seen, alone)]


def evidence(seen: Seen, run: Run) -> Iterator[str]:
    """The first violations of each kind."""
    for kind in (
        unexpected_requests(seen),
        verdict.ledger_deviations(seen.meter.product, run.record),
        verdict.counter_deviations(seen.samples, run.record),
        iter(f"job of {pod} never named" for pod in seen.jobs.unnamed()),
        iter(f"CSV cell {cell!r}" for cell in verdict.formulas(seen.cells)),
    ):
        yield from list(kind)[:10]


def inconclusive_reasons(beside: Run, size: Size) -> Iterator[str]:
    """Reasons why the run with the hostile tenant is inconclusive."""
    last = beside.messages[-1] if beside.messages else {}
    if "accepted" not in last:
        yield "the hostile tenant ended early"
        return
    if beside.early_at_s is None or beside.early_at_s > LATE_AT * size.lasts_s:
        yield f"the early attacks finished only after {beside.early_at_s} s, after the start of late tenants"
    if not all(verdict.disarmed(seen.cells) for seen in beside.seen.values()):
        yield "no job named as a formula was billed"
    yield from (f"no {attack} at all" for attack in {*EARLY, *ATTACKS} - last["accepted"].keys())


def table(alone: Run, beside: Run) -> str:
    """A table of all figures of both runs."""
    names = list(alone.seen)
    head = "".join(f"{name:>30}" for name in names)
    lines = [f"{'':40}{head}", f"{'':40}" + f"{'alone':>15}{'beside':>15}" * len(names)]
    for figure in FIGURES:
        cells = [(figure.of(run.seen[name], run)) for name in names for run in (alone, beside)]
        lines.append(f"{figure.name:40}" + "".join(f"{cell:>15,.6g}" for cell in cells))
    logs = (f"log {name}: {line[:240]}" for name, seen in beside.seen.items() for line in seen.log.splitlines()[-20:])
    return "\n".join([*lines, "", *logs, *attack_summary(beside), *by_path(beside), *unplanned(alone, beside)])


def attack_summary(beside: Run) -> Iterator[str]:
    """The hostile tenant's accepted and rejected requests."""
    last = beside.messages[-1]
    yield f"{writes(beside)} writes of the hostile tenant; not finished: {', '.join(last['unfinished']) or 'nothing'}"
    yield from (f"  {name}: {number}" for name, number in last["accepted"].items())
    yield "rejected by the API server"
    yield from (f"  {name}: {number}" for name, number in last["refused"].items())


def by_path(beside: Run) -> Iterator[str]:
    """The aggregators' requests, most frequent first."""
    for name, seen in beside.seen.items():
        yield f"requests {name}"
        yield from (f"  {number} {path[:120]}" for path, number in seen.requests.by_path().most_common(25))


def unplanned(alone: Run, beside: Run) -> Iterator[str]:
    """Differences of the honest workload from the plan, in both runs."""
    for name, run in (("alone", alone), ("beside", beside)):
        yield from (f"{name}: {each}" for each in verdict.unplanned(run.record, run.plan))
