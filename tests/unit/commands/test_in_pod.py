"""As a plugin of kubectl, commands of the ledger run where the ledger is."""

import os
from pathlib import Path

import pytest

from gputally import cli
from gputally.commands.in_pod import remote_command
from tests.unit.commands.sample import Runner, closed

REMOTE = {each.name for each in cli.COMMANDS if each.runs_in_pod}
IN_POD = ["-n", "gputally", "deploy/gputally-aggregator", "--", "gputally"]


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        ("report --window 7d --by tenant", ["kubectl", "exec", *IN_POD, "report", "--window", "7d", "--by", "tenant"]),
        ("explain --window 7d --top 3", ["kubectl", "exec", *IN_POD, "explain", "--window", "7d", "--top", "3"]),
        (
            "rerate --prices=- --window 7d",
            ["kubectl", "exec", "-i", *IN_POD, "rerate", "--prices=-", "--window", "7d"],
        ),
        (
            "ledger query --context=east -n gpu --deployment tally-aggregator -",
            [
                *("kubectl", "--context=east", "exec", "-i", "-n", "gpu", "deploy/tally-aggregator", "--"),
                *("gputally", "ledger", "query", "-"),
            ],
        ),
        (
            "ledger --kubeconfig k info",
            ["kubectl", "--kubeconfig=k", "exec", *IN_POD, "ledger", "info"],
        ),
    ],
)
def test_commands_run_in_the_pod_of_the_aggregator(arguments: str, command: list[str]) -> None:
    assert remote_command(arguments.split(), REMOTE, environment={}) == command


@pytest.mark.parametrize(
    "arguments",
    [
        "",
        "top -n gpu",
        "why -n ml a",
        "what-if job.yaml",
        "backup -",
        "report --ledger x.db",
        "report --ledger=x.db",
        "report --help",
        "ledger info -h",
    ],
)
def test_other_commands_run_here(arguments: str) -> None:
    assert remote_command(arguments.split(), REMOTE, environment={}) is None


def test_a_ledger_in_the_environment_is_read_here() -> None:
    assert remote_command(["report"], REMOTE, environment={"GPUTALLY_LEDGER": "x.db"}) is None


@pytest.fixture
def plugin(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The program runs as a plugin, with a kubectl that prints its arguments and exits with 7."""
    monkeypatch.delenv("GPUTALLY_LEDGER", raising=False)
    monkeypatch.setattr("sys.argv", ["/usr/bin/kubectl-gputally"])
    program = tmp_path / "bin" / "kubectl"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\necho "$@"\nexit 7\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    return program


@pytest.mark.usefixtures("plugin")
def test_the_exit_status_is_that_of_the_command(capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["report", "--window", "7d"]) == 7
    assert capfd.readouterr().out == f"exec {' '.join(IN_POD)} report --window 7d\n"


def test_without_kubectl_the_message_names_the_remedy(
    plugin: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plugin.unlink()
    monkeypatch.setenv("PATH", str(plugin.parent))

    assert cli.main(["report"]) == 8
    assert (
        capsys.readouterr().err == "gputally: kubectl is not installed; install it, or use a copy with --ledger FILE\n"
    )


@pytest.mark.usefixtures("plugin")
def test_a_copy_is_read_here(run: Runner, tmp_path: Path) -> None:
    assert run("ledger", "info", "--ledger", closed(tmp_path / "l.db")).out.startswith("Ledger")


def test_without_the_plugin_everything_runs_here(run: Runner, tmp_path: Path) -> None:
    assert "no such file" in run("ledger", "info", "--ledger", tmp_path / "none.db").err
