"""Settings: flags over environment over defaults, and everything wrong with them at once."""

import argparse
from collections.abc import Mapping
from pathlib import Path

import pytest

from gputally.errors import ConfigError
from gputally.runtime.settings import SETTINGS, Settings, add_flags, settings_from, variable


def parsed(*arguments: str, environment: Mapping[str, str] | None = None) -> Settings:
    parser = argparse.ArgumentParser()
    add_flags(parser, environment or {})
    return settings_from(vars(parser.parse_args(arguments)))


def problems(*arguments: str) -> list[str]:
    with pytest.raises(ConfigError) as told:
        parsed(*arguments)
    return [str(problem) for problem in told.value.problems]


def test_without_flags_the_defaults_apply() -> None:
    assert parsed() == Settings(config=None, prices=None, ledger=Path("gputally.db"))


def test_each_flag_sets_its_setting() -> None:
    settings = parsed(
        *(
            "--config.file",
            "c.yaml",
            "--prices.file",
            "p.yaml",
            "--ledger",
            "l.db",
            "--kubeconfig",
            "k",
            "--context",
            "x",
        ),
        *("--api.patience", "3", "--web.listen-address", "127.0.0.1:1, [::1]:2", "--web.max-requests", "7"),
        *("--log.level", "debug", "--log.format", "json"),
    )

    assert settings == Settings(
        config=Path("c.yaml"),
        prices=Path("p.yaml"),
        ledger=Path("l.db"),
        kubeconfig="k",
        context="x",
        api_patience_s=3,
        addresses=("127.0.0.1:1", "[::1]:2"),
        max_requests=7,
        log_level="debug",
        log_format="json",
    )


def test_a_variable_gives_a_default_that_a_flag_overrides() -> None:
    environment = {"GPUTALLY_LEDGER": "/data/l.db", "GPUTALLY_WEB_MAX_REQUESTS": "9"}

    settings = parsed("--web.max-requests", "5", environment=environment)

    assert (settings.ledger, settings.max_requests) == (Path("/data/l.db"), 5)


def test_variables_are_named_as_their_flags() -> None:
    assert variable("web.listen-address") == "GPUTALLY_WEB_LISTEN_ADDRESS"
    assert len({variable(setting.name) for setting in SETTINGS}) == len(SETTINGS)


def test_all_that_is_wrong_is_told_at_once() -> None:
    told = problems(
        *("--ledger", "", "--api.patience", "0", "--web.listen-address", "9836", "--web.max-requests", "many"),
        *("--log.level", "loud", "--log.format", "xml"),
    )

    assert told == [
        "--ledger: is empty; name a file",
        "--api.patience: '0' is no whole number above 0; write one such as 15",
        "--web.listen-address: '9836' is no address; write HOST:PORT, [IPV6]:PORT or :PORT",
        "--web.max-requests: 'many' is no whole number above 0; write one such as 15",
        "--log.level: unknown 'loud'; write debug, info, warning or error",
        "--log.format: unknown 'xml'; write text or json",
    ]


@pytest.mark.parametrize("text", ["²", "-1", "1.5", ""])
def test_what_is_no_count_is_refused(text: str) -> None:
    assert problems(f"--web.max-requests={text}") == [
        f"--web.max-requests: '{text}' is no whole number above 0; write one such as 15"
    ]
