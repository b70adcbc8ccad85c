"""What a command imports of gputally: the chosen one pays for itself alone, in memory and in time."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from gputally.cli import COMMANDS

PROGRAM = """
import contextlib, io, json, sys
from gputally.cli import main
unread = io.StringIO()
with contextlib.redirect_stdout(unread), contextlib.redirect_stderr(unread), contextlib.suppress(SystemExit):
    main(sys.argv[1:])
print(json.dumps(sorted(sys.modules)))
"""
BARE = {
    "gputally",
    "gputally.cli",
    "gputally.errors",
    "gputally.model",
    "gputally.model.printable",
    "gputally.process",
    "gputally.process.addresses",
    "gputally.process.settings",
}
"""For the table of commands, their parser and an error."""
MOST_FOR_FLAGS = {"waits": 32, "preemptions": 23, "rerate": 23, "aggregator": 22}
"""Their help names causes, options of purchase, and the resources that are watched on request."""
WRONG_LEVEL = "--log.level=wrong"
"""Is rejected after all modules of the aggregator or the agent are imported."""


def loaded(*arguments: str) -> set[str]:
    """All modules that are loaded at the end of `gputally ARGUMENTS`, in a process of its own."""
    command = (sys.executable, "-c", PROGRAM, *arguments)
    return set(json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout))


def ours(modules: set[str]) -> set[str]:
    return {name for name in modules if name.partition(".")[0] == "gputally"}


def packages(modules: set[str]) -> set[str]:
    """`gputally.kube` for all of its modules."""
    return {name.split(".")[1] for name in ours(modules) if "." in name}


@pytest.mark.parametrize("arguments", [(), ("--version",), ("--help",), ("no-command",)])
def test_without_a_command_only_the_table_is_loaded(arguments: tuple[str, ...]) -> None:
    assert ours(loaded(*arguments)) == BARE


@pytest.mark.parametrize("command", [each.name for each in COMMANDS])
def test_the_flags_of_a_command_need_few_modules(command: str) -> None:
    modules = loaded(command, "--help")

    assert len(ours(modules)) <= MOST_FOR_FLAGS.get(command, 22)
    assert {"aiohttp", "grpc", "rich", "sqlite3", "yaml"}.isdisjoint(modules)


@pytest.mark.parametrize(("question", "most"), [(("why", "ml/train-0"), 41), (("fits",), 42)])
def test_a_question_to_an_aggregator_loads_what_asks_and_prints(question: tuple[str, ...], most: int) -> None:
    modules = loaded(*question, "--url=http://127.0.0.1:9")

    assert {"accounting", "aggregator", "kube", "ledger", "placement", "reports", "shares", "web"}.isdisjoint(
        packages(modules)
    )
    assert len(ours(modules)) <= most


def test_the_agent_loads_only_these_packages() -> None:
    modules = loaded("agent", WRONG_LEVEL)

    assert packages(modules) == {
        "accounting",
        "agent",
        "catalog",
        "cli",
        "commands",
        "devices",
        "errors",
        "exposition",
        "files",
        "formatting",
        "metering",
        "model",
        "process",
        "shares",
        "web",
    }
    names = {name for name in modules if name.startswith("gputally.accounting.")}
    assert names == {
        "gputally.accounting.base",
        "gputally.accounting.base.compact",
        "gputally.accounting.facts",
        "gputally.accounting.facts.gpu_model",
    }
    assert len(ours(modules)) <= 105


def test_the_aggregator_loads_only_these_packages() -> None:
    modules = loaded("aggregator", WRONG_LEVEL)

    assert packages(modules) == {
        "accounting",
        "aggregator",
        "answers",
        "catalog",
        "cli",
        "client",
        "commands",
        "config",
        "errors",
        "exposition",
        "files",
        "formatting",
        "frameworks",
        "kube",
        "ledger",
        "model",
        "placement",
        "process",
        "questions",
        "reports",
        "shares",
        "web",
    }
    assert {"grpc", "jinja2", "kubernetes", "pynvml", "rich"}.isdisjoint(modules)


def test_a_report_loads_nothing_of_the_cluster() -> None:
    modules = loaded("report", "--ledger=/nonexistent/gputally.db")

    assert {"agent", "aggregator", "client", "demo", "importing", "kube"}.isdisjoint(packages(modules))
    # it never writes
    assert {"gputally.accounting.fleet.fleet", "gputally.ledger.sqlite.writer"}.isdisjoint(modules)
    assert {"aiohttp", "kubernetes", "rich"}.isdisjoint(modules)
    assert len(ours(modules)) <= 122


def test_a_check_loads_no_cluster_client_and_no_ledger(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("kind: Configuration\n")

    assert {"aiohttp", "kubernetes", "sqlite3"}.isdisjoint(loaded("check", str(tmp_path / "a.yaml")))
