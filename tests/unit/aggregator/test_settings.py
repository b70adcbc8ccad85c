"""Settings: flags over environment over defaults, and everything wrong with them at once."""

import argparse
from collections.abc import Mapping
from pathlib import Path

import pytest

from gputally.accounting.prices.book import PriceBook
from gputally.aggregator.settings import SETTINGS, AgentOptions, Settings, Target, require_usd, settings_from
from gputally.errors import ConfigError
from gputally.model.kube.kinds import OPTIONAL_RESOURCES
from gputally.model.price import Basis
from gputally.model.rules import AgentMarks
from gputally.process.settings import add_flags, variable


def parsed(*arguments: str, environment: Mapping[str, str] | None = None) -> Settings:
    parser = argparse.ArgumentParser()
    add_flags(parser, SETTINGS, environment or {})
    return settings_from(vars(parser.parse_args(arguments)))


def problems(*arguments: str) -> list[str]:
    with pytest.raises(ConfigError) as told:
        parsed(*arguments)
    return [str(problem) for problem in told.value.problems]


def test_without_flags_the_defaults_apply() -> None:
    assert parsed() == Settings(config=None, prices=None, ledger="gputally.db")


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
        *("--metrics.zero-seconds", "0"),
        *("--api.patience", "3", "--web.listen-address", "127.0.0.1:1, [::1]:2", "--web.max-requests", "7"),
        *("--log.level", "debug", "--log.format", "json"),
    )

    assert settings == Settings(
        config=Path("c.yaml"),
        prices=Path("p.yaml"),
        ledger="l.db",
        kubeconfig="k",
        context="x",
        api_patience_s=3,
        zero_s=0,
        addresses=("127.0.0.1:1", "[::1]:2"),
        max_requests=7,
        log_level="debug",
        log_format="json",
    )


def test_optional_resources_are_a_list() -> None:
    assert parsed("--watch", " resourcequotas,poddisruptionbudgets,,resourcequotas").watched == (
        "resourcequotas",
        "poddisruptionbudgets",
    )
    assert parsed(environment={"GPUTALLY_WATCH": "resourcequotas"}).watched == ("resourcequotas",)


def test_a_resource_that_cannot_be_watched_is_named_with_those_that_can() -> None:
    *others, last = OPTIONAL_RESOURCES

    assert problems("--watch", "quotas,resourcequotas,secrets") == [
        f"--watch: unknown '{each}'; use {', '.join(others)} or {last}" for each in ("quotas", "secrets")
    ]


def test_each_flag_of_the_agents_sets_its_setting() -> None:
    settings = parsed(
        *(
            "--agents.namespace",
            "some",
            "--agents.selector",
            "app=gpu, part=agent",
            "--agents.port",
            "99",
            "--agents.interval",
            "5",
        ),
        *("--agents.token-file", "t", "--agents.ca-file", "ca", "--agents.cert-file", "c", "--agents.key-file", "k"),
        *("--agents.urls", "n1=http://10.0.0.1:99/, n2=https://h?a=b"),
    )

    assert settings.agent_marks == AgentMarks(namespace="some", labels=(("app", "gpu"), ("part", "agent")))
    assert settings.agents == AgentOptions(
        port=99,
        interval_s=5,
        token=Path("t"),
        authority=Path("ca"),
        certificate=Path("c"),
        key=Path("k"),
        urls=(Target("n1", "http://10.0.0.1:99"), Target("n2", "https://h?a=b")),
    )
    assert parsed("--agents.selector", "").agent_marks == AgentMarks(labels=())


def test_all_that_is_wrong_about_agents_is_told_at_once() -> None:
    told = problems(
        *("--agents.selector", "app, part=,part=b", "--agents.port", "65536", "--agents.interval", "0"),
        *("--agents.key-file", "k", "--agents.urls", "n1=http://a,n1=http://b,n2=10.0.0.2"),
    )

    assert told == [
        "--agents.selector: 'app' is not valid; use KEY=VALUE, separate several by commas",
        "--agents.selector: 'part' is not valid; use KEY=VALUE, separate several by commas",
        "--agents.port: '65536' is not a valid port; use a port up to 65535",
        "--agents.interval: '0' is not a whole number above 0; use a number such as 15",
        "--agents.key-file: has no certificate; specify it with --agents.cert-file",
        "--agents.urls: names 'n1' more than once",
        "--agents.urls: '10.0.0.2' is not a URL; use a URL such as http://10.0.0.7:9837",
    ]


def test_the_cost_of_jobs_needs_prices_and_the_page_of_pods() -> None:
    assert problems("--metrics.training-job-cost", "on", "--metrics.pods", "off") == [
        "--metrics.training-job-cost: needs a price book in USD; set --prices.file",
        "--metrics.training-job-cost: is served on /metrics/pods; remove --metrics.pods=off",
    ]
    assert problems("--metrics.training-job-cost", "yes") == [
        "--metrics.training-job-cost: unknown 'yes'; use on or off"
    ]


@pytest.mark.parametrize("currency", ["USD", "EUR"])
def test_the_cost_of_jobs_needs_a_price_book_in_usd(currency: str) -> None:
    settings = parsed("--metrics.training-job-cost", "on", "--prices.file", "p.yaml")
    book = PriceBook(currency=currency, basis=Basis.NODE, rules=(), tiers=(), digest="")

    assert settings.training_job_cost
    if currency == "USD":
        require_usd(settings, book)
    else:
        with pytest.raises(ConfigError, match=r"needs a price book in USD; p.yaml is in EUR"):
            require_usd(settings, book)


def test_a_variable_gives_a_default_that_a_flag_overrides() -> None:
    environment = {"GPUTALLY_LEDGER": "/data/l.db", "GPUTALLY_WEB_MAX_REQUESTS": "9"}

    settings = parsed("--web.max-requests", "5", environment=environment)

    assert (settings.ledger, settings.max_requests) == ("/data/l.db", 5)


def test_variables_are_named_as_their_flags() -> None:
    assert variable("web.listen-address") == "GPUTALLY_WEB_LISTEN_ADDRESS"
    assert len({variable(setting.name) for setting in SETTINGS}) == len(SETTINGS)


def test_all_that_is_wrong_is_told_at_once() -> None:
    told = problems(
        *("--ledger", "", "--api.patience", "0", "--web.listen-address", "9836", "--web.max-requests", "many"),
        *("--log.level", "loud", "--log.format", "xml"),
    )

    assert told == [
        "--ledger: is empty; specify a file",
        "--api.patience: '0' is not a whole number above 0; use a number such as 15",
        "--web.listen-address: '9836' is not an address; use HOST:PORT, [IPV6]:PORT or :PORT",
        "--web.max-requests: 'many' is not a whole number above 0; use a number such as 15",
        "--log.level: unknown 'loud'; use debug, info, warning or error",
        "--log.format: unknown 'xml'; use text or json",
    ]


@pytest.mark.parametrize("text", ["²", "-1", "1.5", ""])
def test_what_is_no_count_is_refused(text: str) -> None:
    assert problems(f"--web.max-requests={text}") == [
        f"--web.max-requests: '{text}' is not a whole number above 0; use a number such as 15"
    ]


def test_the_url_of_grafana_is_one() -> None:
    assert parsed("--web.grafana-url", "https://grafana.example/").grafana == "https://grafana.example"
    assert problems("--web.grafana-url", "grafana") == [
        "--web.grafana-url: 'grafana' is not a URL; use a URL such as https://grafana.example.com"
    ]


@pytest.mark.parametrize(("text", "days"), [("", None), ("62d", 62), ("400d", 400), ("9w", 63), ("2y", 730)])
def test_the_retention_is_a_number_of_days_weeks_or_years(text: str, days: int | None) -> None:
    assert parsed("--ledger.retention", text).retention_days == days


@pytest.mark.parametrize(
    ("text", "problem"),
    [("61d", "is too short"), ("8w", "is too short"), ("400", "is not a duration"), ("0d", "is too short")],
)
def test_a_retention_that_might_lose_details_of_the_last_month_is_rejected(text: str, problem: str) -> None:
    remedy = "use 62d or more, such as 400d, so that the last month always has all details"

    assert problems("--ledger.retention", text) == [f"--ledger.retention: '{text}' {problem}; {remedy}"]
