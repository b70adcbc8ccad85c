"""The demo as its users run it."""

import asyncio
import re
import signal
from asyncio.subprocess import Process
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import pytest

from gputally.demo.demo import time_limit
from gputally.errors import ConfigError
from gputally.ledger.sqlite.writer import SqliteLedger
from gputally.model.units import GPU_SECOND
from tests.core.ledgers import segments_in
from tests.fakes.command import PATIENCE_SECONDS, Samples, done, fallen, run, scrape, start, sum_of

FAST = ("--speed", "3600")
PODS = """\
id,tenant,qos,gpu_type,gpu_milli,submit,start,end,status
a,ada,LS,T4,2000,0,100,36000,Running
b,grace,BE,T4,700,0,0,36000,Killed
c,grace,BE,T4,1000,5,,900,Pending
"""


async def serving(process: Process) -> str:
    """Its URL, once it says so."""
    assert process.stdout
    async with asyncio.timeout(PATIENCE_SECONDS):
        while line := (await process.stdout.readline()).decode():
            if line.startswith("metrics: "):
                return line.split()[1].removesuffix("/metrics")
    raise AssertionError((await done(process)).err)


async def busy(url: str) -> Samples:
    """A scrape with GPUs at work in it, after one in which new series are 0."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            samples = await scrape(url)
            if sum_of(samples, "gputally_allocated_gpu_seconds_total"):
                return samples
            await asyncio.sleep(0.02)


def last_time(out: str) -> datetime:
    """When the last table was drawn, in the cluster's time."""
    return datetime.fromisoformat(re.findall(r"\w{3} (\d{4}-\d\d-\d\d \d\d:\d\d) simulated", out)[-1])


async def test_it_runs_for_its_time_and_shows_what_it_found() -> None:
    status, out, err = await run("demo", "--for", "1s", *FAST)

    assert (status, err) == (0, "")
    assert out.startswith(
        "gputally demo: scenario s1, seed 1, 3600 x real time (Ctrl-C ends it)\nmetrics: http://127.0.0.1:"
    )
    assert out.endswith("demo ended\n")
    assert re.search(r"^inference-critical +2 +0 +\d", out, re.MULTILINE)
    assert re.search(r"^serving +2 +0 +\d", out, re.MULTILINE)


async def test_what_agents_of_its_nodes_measured_is_shown() -> None:
    status, out, err = await run("demo", "--for", "3s", "--speed", "600")

    assert (status, err) == (0, "")
    tiers = out.rpartition("\ntier ")[2].partition("\ntenant ")[0]
    line = re.search(r"^inference-critical +2 +0 +[\d.]+ +[\d.]+ +(\d+)% +([\d.]+) +([\d.]+) +0$", tiers, re.MULTILINE)
    assert line
    assert 0 < int(line[1]) <= 100
    assert 0 < float(line[3]) < float(line[2])
    assert "unknown" not in out


async def test_it_does_as_its_flags_say(tmp_path: Path, port: int) -> None:
    process = await start(
        *("demo", "--for", "2s", "--web.listen-address", f"127.0.0.1:{port}", "--ledger", tmp_path / "demo.db"),
        *("--seed", "7", "--scenario", "s2", *FAST),
    )
    url = await serving(process)
    samples = await busy(url)
    status, out, err = await done(process)

    assert url == f"http://127.0.0.1:{port}"
    assert sum_of(samples, "gputally_nodes") == 3
    assert (status, err) == (0, "")
    assert out.startswith(f"pages:   {url}/pending and {url}/report\nledger:  {tmp_path / 'demo.db'}\n")
    assert {each.segment.tenant for each in segments_in(tmp_path / "demo.db")} >= {"alpha", "beta"}


async def test_a_kept_ledger_is_continued_by_the_next_run(tmp_path: Path) -> None:
    ledger = tmp_path / "demo.db"
    scrapes, ends = list[Samples](), list[datetime]()
    for _ in range(3):
        process = await start("demo", "--for", "2s", "--ledger", ledger, "--speed", "14400")
        url = await serving(process)
        await busy(url)
        scrapes.append(await scrape(url))
        status, out, err = await done(process)
        ends.append(last_time(out))
        assert (status, err) == (0, "")

    for before, after in pairwise(scrapes):
        assert fallen(before, after) == []
        assert {value for name, value in after.items() if name.startswith("gputally_reconciliation_difference")} == {0}
    assert ends == sorted(set(ends)), "time did not go on"
    assert sum_of(scrapes[2], "gputally_accounting_start_timestamp_seconds") == sum_of(
        scrapes[0], "gputally_accounting_start_timestamp_seconds"
    )


async def test_the_ledger_of_another_seed_is_refused(tmp_path: Path) -> None:
    await run("demo", "--for", "1s", "--ledger", tmp_path / "demo.db")

    status, _, err = await run("demo", "--for", "1s", "--ledger", tmp_path / "demo.db", "--seed", "2")

    assert status == 4
    assert err.startswith(f"gputally: {tmp_path / 'demo.db'}: belongs to the cluster ")
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize("asked", [signal.SIGINT, signal.SIGTERM])
async def test_asked_to_stop_it_ends_cleanly(tmp_path: Path, asked: signal.Signals) -> None:
    process = await start("demo", "--ledger", tmp_path / "demo.db", *FAST)
    samples = await busy(await serving(process))
    process.send_signal(asked)
    status, out, err = await done(process)

    assert (status, err) == (0, "")
    assert out.endswith("demo ended\n")
    with SqliteLedger(tmp_path / "demo.db") as ledger:
        saved = ledger.saved(now_us=0)
    assert len(saved.pods) >= sum_of(samples, "gputally_allocated_gpus") > 0


async def test_who_reads_no_further_sees_no_traceback() -> None:
    process = await start("demo", *FAST)
    assert process.stdout
    process.stdout._transport.close()  # type: ignore[attr-defined]  # what `head` does
    async with asyncio.timeout(PATIENCE_SECONDS):
        assert process.stderr
        err = await process.stderr.read()
        status = await process.wait()

    assert (status, err.decode()) == (0, "")


async def test_a_trace_is_replayed_to_its_end_and_all_of_it_accounted(tmp_path: Path) -> None:
    (tmp_path / "pods.csv").write_text(PODS)
    (tmp_path / "nodes.csv").write_text("node,gpu_type,gpu_count\nn0,T4,2\nn1,T4,2\n")
    ledger = tmp_path / "demo.db"

    status, out, err = await run(
        *("demo", "--trace", tmp_path / "pods.csv", "--trace-nodes", tmp_path / "nodes.csv"),
        *("--ledger", ledger, "--speed", "1e6"),
    )

    assert (status, err) == (0, "")
    assert out.startswith(f"gputally demo: trace {tmp_path / 'pods.csv'}, seed 1, 1e+06 x real time (Ctrl-C ends it)\n")
    assert re.search(r" simulated, 10\.0 hours elapsed, 100\.0% of the trace$", out, re.MULTILINE)
    assert out.endswith("demo ended\n")
    segments = [each.segment for each in segments_in(ledger)]
    assert {
        (each.tier, each.tenant, each.quantity * ((each.end_us or 0) - each.start_us), each.price is None)
        for each in segments
    } == {("ls", "ada", 71_800 * GPU_SECOND, False), ("be", "grace", 25_200 * GPU_SECOND, False)}


async def test_chaos_is_survived(tmp_path: Path) -> None:
    (tmp_path / "pods.csv").write_text(PODS)

    status, out, err = await run("demo", "--trace", tmp_path / "pods.csv", "--chaos", "--speed", "36000")

    assert (status, err) == (0, "")
    assert out.startswith(
        f"gputally demo: trace {tmp_path / 'pods.csv'}, with chaos, seed 1, 36000 x real time (Ctrl-C ends it)\n"
    )
    assert re.search("^ada .* 19.94 ", out, re.MULTILINE)


async def test_a_trace_is_not_replayed_into_a_ledger_that_has_something(tmp_path: Path) -> None:
    (tmp_path / "pods.csv").write_text(PODS)
    (tmp_path / "demo.db").write_bytes(b"")

    status, _, err = await run("demo", "--trace", tmp_path / "pods.csv", "--ledger", tmp_path / "demo.db")

    assert status == 2
    assert err == (
        f"gputally: --ledger: {tmp_path / 'demo.db'} exists, but a trace is replayed from its beginning; "
        "use a new file\n"
    )


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--for", "soon"), "gputally: --for: 'soon' is not a duration; use one such as 30s or 5m"),
        (("--for", "0s"), "gputally: --for: '0s' is not a duration; use one such as 30s or 5m"),
        (("--speed", "0"), "gputally: --speed: 0 is not a valid speed; use a number above 0"),
        (("--speed", "nan"), "gputally: --speed: nan is not a valid speed; use a number above 0"),
        (("--speed", "inf"), "gputally: --speed: inf is not a valid speed; use a number above 0"),
        (("--seed", "x"), "gputally demo: error: argument --seed: invalid int value: 'x'"),
        (("--scenario", "s9"), "gputally demo: error: argument --scenario: invalid choice: 's9'"),
        (("--trace", "/none.csv"), "gputally: /none.csv: cannot be read: No such file or directory"),
        (("--trace-nodes", "x.csv"), "gputally: --trace-nodes: requires --trace; specify the trace too"),
        (
            ("--trace", "x.csv", "--scenario", "s2"),
            "gputally demo: error: argument --scenario: not allowed with argument --trace",
        ),
        (("--spe", "6"), "gputally demo: error: unrecognized arguments: --spe 6; did you mean --speed?"),
        (("--web.listen-address", "here"), "gputally: --web.listen-address: 'here' is not an address; use HOST:PORT"),
    ],
)
async def test_flags_that_cannot_be_are_told(flags: tuple[str, ...], message: str) -> None:
    status, _, err = await run("demo", *flags)

    assert status == 2
    assert err.splitlines()[-1].startswith(message)
    assert "Traceback" not in err


@pytest.mark.parametrize(("text", "expected"), [("", None), ("5s", 5), ("2m", 120), ("1h", 3600)])
def test_times_are_read_as_they_are_written(text: str, expected: int | None) -> None:
    assert time_limit(text) == expected


@pytest.mark.parametrize("text", ["5", "-1s", "s", "0s", "1.5s", "nan"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        time_limit(text)
