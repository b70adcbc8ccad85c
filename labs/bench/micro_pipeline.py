"""Measures each stage of the accounting, in one process and without a network."""

import time
from collections.abc import Iterable, Iterator
from itertools import cycle
from pathlib import Path
from tempfile import TemporaryDirectory

from gputally.accounting.fleet.fleet import Fleet
from gputally.accounting.fleet.snapshot import Snapshot, publish
from gputally.catalog.all import FLEET
from gputally.catalog.metric import Columns, Metric
from gputally.config.read import read_files
from gputally.exposition.text_format import Rows, render
from gputally.kube.watch_events import BookmarkEvent, decoder
from gputally.ledger.sqlite.writer import SqliteLedger
from gputally.model.kube.kinds import Kind
from gputally.model.kube.meta import Namespace, Object, Status
from gputally.model.kube.nodes import Node
from gputally.model.kube.pods import Pod
from gputally.model.observation import Upserted
from gputally.model.units import US_PER_SECOND
from labs.bench import synthetic, workload
from labs.bench.figure import Figure
from labs.bench.subject import write_configuration
from labs.bench.timing import best_ms, timed

PODS = 20_000
NOW_US = time.time_ns() // 1000


def measure() -> Iterator[Figure]:
    """Decode, account, publish, write and restore `PODS` pods."""
    with TemporaryDirectory() as folder:
        rules, book = read_files(*write_configuration(Path(folder)))
        with SqliteLedger(Path(folder) / "ledger.db") as ledger:
            fleet = Fleet(rules=rules, book=book, saved=ledger.saved(now_us=NOW_US))
            apply_all(fleet, Kind.NAMESPACES, decoded(Namespace, namespaces()))
            apply_all(fleet, Kind.NODES, decoded(Node, nodes()))
            yield from _accounting(fleet)
            yield from _publishing(fleet)
            yield from _writing(fleet, ledger)
            seconds = timed(lambda: Fleet(rules=rules, book=book, saved=ledger.saved(now_us=NOW_US)))
            yield Figure("micro.restore_us_per_pod", per_pod(seconds), "µs")


def _accounting(fleet: Fleet) -> Iterator[Figure]:
    first = [synthetic.running_pod(number, 100) for number in range(PODS)]
    yield Figure("micro.pod_bytes", sum(map(len, first)) / PODS, "bytes")
    yield Figure("micro.decode_us_per_pod", per_pod(timed(lambda: decoded(Pod, first))), "µs")
    new = decoded(Pod, first)
    yield Figure("micro.apply_new_us_per_pod", per_pod(timed(lambda: apply_all(fleet, Kind.PODS, new))), "µs")
    same = decoded(Pod, (synthetic.running_pod(number, 200) for number in range(PODS)))
    yield Figure("micro.apply_repeat_us_per_pod", per_pod(timed(lambda: apply_all(fleet, Kind.PODS, same))), "µs")


def _publishing(fleet: Fleet) -> Iterator[Figure]:
    yield Figure("micro.publish_ms", best_ms(lambda: publish(fleet, now_us=NOW_US, ledger={})), "ms")
    snapshots = [publish(fleet, now_us=NOW_US + second * US_PER_SECOND, ledger={}) for second in (1, 2)]
    scrapes = cycle([[(metric, _rows(metric, snapshot)) for metric in FLEET] for snapshot in snapshots])
    yield Figure("micro.rows", sum(len(list(rows)) for _, rows in next(scrapes)), "rows")
    yield Figure("micro.rows_ms", best_ms(lambda: [_rows(metric, snapshots[0]) for metric in FLEET]), "ms")
    yield Figure("micro.render_ms", best_ms(lambda: render(next(scrapes), openmetrics=False)), "ms")


def _rows(metric: Metric[Snapshot], snapshot: Snapshot) -> Rows:
    rows = metric.rows(snapshot)
    return rows if isinstance(rows, Columns) else list(rows)


def _writing(fleet: Fleet, ledger: SqliteLedger) -> Iterator[Figure]:
    yield Figure("micro.ledger_write_new_us_per_pod", per_pod(timed(lambda: ledger.write(fleet.drain()))), "µs")
    ended = decoded(Pod, (synthetic.ended_pod(number, 300) for number in range(PODS)))
    yield Figure("micro.apply_end_us_per_pod", per_pod(timed(lambda: apply_all(fleet, Kind.PODS, ended))), "µs")
    yield Figure("micro.ledger_write_ended_us_per_pod", per_pod(timed(lambda: ledger.write(fleet.drain()))), "µs")


def namespaces() -> Iterator[bytes]:
    for number, manifest in enumerate(workload.namespaces(), start=2 * PODS):
        yield synthetic.event(manifest, number=number, version=1)


def nodes() -> Iterator[bytes]:
    for number in range(PODS // workload.GPUS_PER_NODE):
        yield synthetic.event(workload.node(number), number=3 * PODS + number, version=1)


def decoded(kind: type[Object], lines: Iterable[bytes]) -> list[Object]:
    decode = decoder(kind)
    changes = map(decode, lines)
    return [change.object for change in changes if not isinstance(change, BookmarkEvent | Status)]


def apply_all(fleet: Fleet, kind: Kind, objects: Iterable[Object]) -> None:
    for each in objects:
        fleet.apply(Upserted(kind=kind, object=each, at_us=NOW_US, since_us=NOW_US))


def per_pod(seconds: float) -> float:
    """Microseconds per pod."""
    return seconds * 1e6 / PODS
