"""The command line as a process: each trouble is one clear message and its own exit status, never a traceback."""

import asyncio
import re
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gputally import cli
from gputally.accounting.fleet.fleet import Fleet
from gputally.ledger.sqlite.writer import SqliteLedger
from gputally_sim.cluster import SimCluster
from tests.fakes.certificates import Certificates
from tests.fakes.command import PATIENCE_SECONDS, Done, done, fallen, run, scrape, start, sum_of, until_ready
from tests.fakes.kubeconfigs import kubeconfig
from tests.fakes.policies import TLS, SiteClient, config


def assert_told(ended: Done, status: int, *messages: str) -> None:
    """Nothing else is said but log lines before."""
    assert "Traceback" not in ended.err
    lines = [line for line in ended.err.splitlines() if not re.match(r"\d{4}-\d\d-\d\dT", line)]
    assert len(lines) == len(messages), ended.err
    for line, message in zip(lines, messages, strict=True):
        assert re.search(message, line), ended.err
    assert (ended.status, ended.out) == (status, "")


@pytest.fixture
async def cluster() -> AsyncIterator[SimCluster]:
    """In the present, as a process of its own has no other clock; its scenario began ten minutes ago."""
    async with SimCluster(seed=1, start_us=time.time_ns() // 1000 - 600_000_000) as cluster:
        cluster.run_scenario("s1")
        cluster.clock.skip_to(time.time_ns() // 1000)
        yield cluster


@pytest.mark.parametrize("asked", [signal.SIGINT, signal.SIGTERM])
async def test_asked_to_stop_it_has_written_everything(
    tmp_path: Path, cluster: SimCluster, kubeconfig_file: str, port: int, asked: signal.Signals
) -> None:
    url, flags = f"http://127.0.0.1:{port}", ("--kubeconfig", kubeconfig_file, "--ledger", tmp_path / "l.db")
    process = await start("aggregator", *flags, "--web.listen-address", f"127.0.0.1:{port}")
    await until_ready(url, process)
    await scrape(url)
    before = await scrape(url)
    process.send_signal(asked)
    first = await done(process)
    with SqliteLedger(tmp_path / "l.db") as ledger:
        saved = ledger.saved(now_us=0)

    process = await start("aggregator", *flags, "--web.listen-address", f"127.0.0.1:{port}", "--log.format", "json")
    await until_ready(url, process)
    after = await scrape(url)
    process.send_signal(asked)
    second = await done(process)

    assert (first.status, second.status) == (0, 0)
    assert re.fullmatch(rf"\S+Z INFO +serving on {url}/metrics\n", first.err)
    assert second.err.startswith('{"time": "')
    assert len(saved.pods) == sum_of(before, "gputally_pods") > 0
    assert fallen(before, after) == []
    assert cluster.faults.open_watches == 0


async def test_an_api_server_out_of_reach(tmp_path: Path, port: int) -> None:
    file = kubeconfig(tmp_path, f"http://127.0.0.1:{port}", {"token": "any"})

    ended = await run("aggregator", "--kubeconfig", file, "--ledger", tmp_path / "l.db", "--api.patience", "1")

    assert_told(
        ended, 3, rf"^gputally: http://127.0.0.1:{port}/\S+: Cannot connect .*; gave up after 1 s, check the server"
    )


async def test_an_api_server_that_forbids(tmp_path: Path, cluster: SimCluster, kubeconfig_file: str) -> None:
    cluster.faults.forbidden = {"nodes", "priorityclasses", "events"}

    ended = await run("aggregator", "--kubeconfig", kubeconfig_file, "--ledger", tmp_path / "l.db")

    assert_told(
        ended,
        3,
        r"^gputally: .*; grant list,watch on nodes in API group ''$",
        r"; grant list,watch on priorityclasses in API group 'scheduling.k8s.io'$",
        r"; grant list,watch on events in API group ''$",
    )


async def test_a_login_that_has_expired(tmp_path: Path) -> None:
    async with SimCluster(start_us=0, token="fresh") as cluster:
        file = kubeconfig(tmp_path, cluster.url, {"token": "stale"})

        ended = await run("aggregator", "--kubeconfig", file, "--ledger", tmp_path / "l.db")

    assert_told(ended, 3, rf"^gputally: .*401.*; renew the credentials in {file}: users\[u\]$")


async def test_no_way_to_any_cluster(tmp_path: Path) -> None:
    ended = await run("aggregator", "--ledger", tmp_path / "l.db")

    assert_told(ended, 2, "^gputally: kubeconfig: no kubeconfig found and not inside a cluster")


async def test_a_ledger_that_cannot_be_written(tmp_path: Path) -> None:
    ended = await run("aggregator", "--ledger", tmp_path / "no" / "folder" / "l.db")

    assert_told(
        ended, 4, rf"^gputally: {tmp_path}/no/folder/l.db: cannot be locked: No such file or directory; choose a"
    )


async def test_a_ledger_that_another_process_writes(tmp_path: Path) -> None:
    with SqliteLedger(tmp_path / "l.db"):
        ended = await run("aggregator", "--ledger", tmp_path / "l.db")

    assert_told(ended, 4, "another process writes this ledger; stop it, or use another ledger$")


async def test_an_address_that_is_taken(tmp_path: Path, cluster: SimCluster, kubeconfig_file: str) -> None:
    assert cluster.url
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        flags = ("--kubeconfig", kubeconfig_file, "--ledger", tmp_path / "l.db", "--web.listen-address", address)
        ended = await run("aggregator", *flags)

    assert_told(
        ended, 5, f"^gputally: {address} is in use by another process; stop it or choose another --web.listen-address$"
    )


@pytest.mark.parametrize("command", ["aggregator", "agent"])
async def test_a_wrong_web_configuration(tmp_path: Path, command: str) -> None:
    file = tmp_path / "web.yml"
    file.write_text("basic_auth_users: {anna: hunter2}\n")

    ended = await run(command, "--web.config.file", file)

    assert_told(ended, 2, rf"^gputally: {file}: basic_auth_users.anna: is not a bcrypt hash; use what")
    assert "hunter2" not in ended.err


async def test_the_aggregator_serves_by_its_web_configuration(
    tmp_path: Path, cluster: SimCluster, kubeconfig_file: str, port: int
) -> None:
    certificates, file = Certificates(tmp_path), config(tmp_path, TLS + "bearer_token_files: {prometheus: token}\n")
    (tmp_path / "token").write_text("0123456789")
    flags = ("--kubeconfig", kubeconfig_file, "--ledger", tmp_path / "l.db", "--web.config.file", file)
    process = await start("aggregator", *flags, "--web.listen-address", f"127.0.0.1:{port}")
    door, tls = SiteClient("https", "127.0.0.1", port), certificates.client_context()
    async with asyncio.timeout(PATIENCE_SECONDS):
        while (await door.get("/readyz", tls=tls)).status != 200:  # noqa: ASYNC110 - it sends no signal
            await asyncio.sleep(0.02)
    statuses = [(await door.get(tls=tls, shown=shown)).status for shown in ("", "Bearer 0123456789")]
    process.terminate()
    ended = await done(process)

    assert cluster.url
    assert (statuses, ended.status) == ([401, 200], 0)
    assert f"serving on https://127.0.0.1:{port}/metrics" in ended.err
    assert "0123456789" not in ended.err


async def test_a_wrong_configuration_and_a_wrong_price_book_are_told_together(tmp_path: Path) -> None:
    rules, prices = tmp_path / "config.yaml", tmp_path / "prices.yaml"
    rules.write_text("kind: Configuration\ntiers: 7\n")
    prices.write_text("kind: PriceBook\nbasis: moon\n")

    ended = await run("aggregator", "--config.file", rules, "--prices.file", prices, "--ledger", tmp_path / "l.db")

    assert ended.status == 2
    assert f"{rules}: tiers: " in ended.err
    assert f"{prices}: basis: " in ended.err
    assert "Traceback" not in ended.err
    assert not (tmp_path / "l.db").exists()


async def test_flags_and_variables_that_cannot_be_are_told_together(tmp_path: Path) -> None:
    ended = await run("aggregator", "--ledger", tmp_path / "l.db", "--log.level", "loud", "--web.listen-address", "x")

    assert_told(ended, 2, "^gputally: --web.listen-address: 'x' is not an address", "^--log.level: unknown 'loud'")


async def test_check_tells_the_problems_of_all_files(tmp_path: Path) -> None:
    good, bad, worse, missing = (tmp_path / name for name in ("good.yaml", "bad.yaml", "worse.yaml", "missing.yaml"))
    good.write_text("kind: Configuration\n")
    bad.write_text("kind: PriceBook\nbasis: moon\n")
    worse.write_text("kind: [\n")

    ended = await run("check", good, bad, worse, missing)

    assert ended.status == 2
    assert ended.out == ""
    told = {line.partition(":")[0] for line in ended.err.splitlines()}
    assert told == {str(bad), str(worse), str(missing)}
    assert "Traceback" not in ended.err


async def test_check_says_when_there_is_nothing_to_mend(tmp_path: Path) -> None:
    for name in ("a.yaml", "b.yaml"):
        (tmp_path / name).write_text("kind: Configuration\n")

    assert await run("check", tmp_path / "a.yaml") == (0, "1 file checked, no problems\n", "")
    assert await run("check", tmp_path / "a.yaml", tmp_path / "b.yaml") == (0, "2 files checked, no problems\n", "")


@pytest.mark.parametrize("arguments", [(), ("dance",), ("aggregator", "--led", "x"), ("check",)])
async def test_what_is_no_command_is_told_with_the_usage(arguments: tuple[str, ...]) -> None:
    status, out, err = await run(*arguments)

    assert (status, out) == (2, "")
    assert err.startswith("usage: gputally")


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (("tpo",), "top"),
        (("top", "--intervall", "3"), "--interval"),
        (("aggregator", "--price.file=x"), "--prices.file"),
    ],
)
async def test_a_misspelled_word_is_answered_with_the_one_it_may_mean(arguments: tuple[str, ...], meant: str) -> None:
    status, _, err = await run(*arguments)

    assert status == 2
    assert err.rstrip().endswith(f"; did you mean {meant}?")


async def test_a_flag_of_another_command_is_not_suggested() -> None:
    status, _, err = await run("explain", "--unallocated")

    assert status == 2
    assert err.rstrip().endswith("gputally explain: error: unrecognized arguments: --unallocated")


async def test_help_names_every_exit_status() -> None:
    status, out, _ = await run("--help")

    assert status == 0
    text = " ".join(out.split()).partition("exit status: ")[2]
    assert re.findall(r"(?:^|; )(\d+) ", text) == ["0", "1", "2", "3", "4", "5", "7", "8", "9", "10", "12", "130"]


def test_a_bug_shows_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Fleet, "observe", lambda *_: 1 // 0)

    with pytest.raises(ExceptionGroup) as raised:
        cli.main(["demo", "--for", "20s"])

    assert raised.group_contains(ZeroDivisionError)


def test_the_demo_says_how_to_get_the_simulator(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "gputally_sim", None)  # as good as not installed
    for name in [name for name in sys.modules if name.startswith(("gputally.demo.", "gputally_sim."))]:
        monkeypatch.delitem(sys.modules, name)

    assert cli.main(["demo"]) == 2
    assert "pip install ./simulator" in capsys.readouterr().err
