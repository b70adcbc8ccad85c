"""The harness itself: real servers scrape, alert, notify, refuse and come back."""

import json
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cluster.component import ComponentFailed
from tests.cluster.manifests import Json
from tests.prometheus.alertmanager import AlertmanagerServer
from tests.prometheus.daemon import ReloadRefused
from tests.prometheus.page import Page
from tests.prometheus.receiver import Receiver
from tests.prometheus.server import Configuration, PrometheusServer, scrape
from tests.prometheus.tools import (
    ToolFailed,
    check_alertmanager_config,
    check_config,
    check_rules,
    create_blocks,
    routed,
    run_rule_tests,
)

pytestmark = pytest.mark.e2e

ROUTES = """
route:
  receiver: tickets
  group_by: [alertname]
  group_wait: 0s
  group_interval: 1s
  routes:
    - matchers: [severity="critical"]
      receiver: pager
inhibit_rules:
  - source_matchers: [severity="critical"]
    target_matchers: [severity="warning"]
    equal: [cluster]
receivers:
  - name: tickets
    webhook_configs:
      - url: https://hooks.example.com/tickets
  - name: pager
    webhook_configs:
      - url: https://hooks.example.com/pager
"""


@pytest.fixture
def routes(tmp_path: Path) -> Path:
    return written(tmp_path / "routes.yml", ROUTES)


async def test_an_alert_reaches_its_receiver_and_so_does_its_end(
    page: Page, receiver: Receiver, routes: Path, tmp_path: Path
) -> None:
    rules = rule_file(tmp_path / "rules.yml", "Hot", "temperature > 80")
    page.values["temperature"] = 90
    async with AlertmanagerServer(tmp_path, routes, replacements=at(receiver)) as alertmanager:
        configuration = replace(
            scraping(page), rule_files=[rules], alertmanager=alertmanager.url, external_labels={"cluster": "c1"}
        )
        async with PrometheusServer(tmp_path, configuration) as prometheus:
            [alert] = await prometheus.until_firing("Hot")
            await receiver.until(lambda receiver: receiver.to("pager"))
            [sent] = await alertmanager.until(len)
            page.values["temperature"] = 20
            await receiver.until(lambda receiver: receiver.to("pager")[-1].status == "resolved")

            assert await prometheus.until_firing() == []
    first, last = receiver.to("pager")
    assert (first.status, first.names, last.names) == ("firing", {"Hot"}, {"Hot"})
    assert alert["labels"].items() < sent["labels"].items()
    assert sent["labels"]["cluster"] == "c1"
    assert not receiver.to("tickets")


async def test_samples_survive_a_kill(page: Page, tmp_path: Path) -> None:
    page.values["temperature"] = 42
    async with PrometheusServer(tmp_path, scraping(page)) as prometheus:
        await prometheus.until_up("page")
        await prometheus.until("temperature", lambda answer: answer.series)
        before = time.time()
        page.values["temperature"] = 43

        await prometheus.restart()

        await prometheus.until("temperature", lambda answer: answer.value == 43)
        assert (await prometheus.query("temperature", at=before)).value == 42


async def test_backfilled_samples_stand_beside_new_ones(page: Page, tmp_path: Path) -> None:
    then = time.time() - 400 * 24 * 3600
    lines = f'# TYPE temperature gauge\ntemperature{{job="page"}} 7 {then:.3f}\n# EOF\n'
    create_blocks(written(tmp_path / "history", lines), tmp_path / "blocks")
    page.values["temperature"] = 8
    async with PrometheusServer(tmp_path, scraping(page), data=tmp_path / "blocks") as prometheus:
        await prometheus.until("temperature", lambda answer: answer.series and answer.value == 8)

        assert (await prometheus.query("temperature", at=then)).value == 7


async def test_a_reload_changes_targets_and_a_refused_one_changes_nothing(page: Page, tmp_path: Path) -> None:
    rules = rule_file(tmp_path / "rules.yml", "Anything", "vector(1)")
    async with PrometheusServer(tmp_path, Configuration()) as prometheus:
        await prometheus.reload(replace(scraping(page), rule_files=[rules]))
        await prometheus.until_up("page")
        await prometheus.until_firing("Anything")
        rule_file(rules, "Broken", "sum by")

        with pytest.raises(ReloadRefused, match="unexpected end of input"):
            await prometheus.reload()

        assert await prometheus.until_firing("Anything")


async def test_what_never_holds_is_told_with_the_last_answer(tmp_path: Path) -> None:
    async with PrometheusServer(tmp_path, Configuration()) as prometheus:
        with pytest.raises(TimeoutError, match=r"vector\(7\) is not as awaited after 0.3 s, but: .*7\.0"):
            await prometheus.until("vector(7)", lambda answer: answer.value == 8, within=0.3)


async def test_a_server_that_cannot_start_says_why(tmp_path: Path) -> None:
    server = PrometheusServer(tmp_path, Configuration(scrape_configs=[{"job": "misspelt"}]))

    with pytest.raises(ComponentFailed, match="field job not found"):
        async with server:
            pytest.fail("it started")


async def test_an_inhibited_alert_is_known_but_not_sent(receiver: Receiver, routes: Path, tmp_path: Path) -> None:
    async with AlertmanagerServer(tmp_path, routes, replacements=at(receiver)) as alertmanager:
        await alertmanager.send({"alertname": "Down", "severity": "critical", "cluster": "c1"})
        await receiver.until(lambda receiver: receiver.to("pager"))
        await alertmanager.send(
            {"alertname": "Slow", "severity": "warning", "cluster": "c1"},
            {"alertname": "Slow", "severity": "warning", "cluster": "c2"},
        )
        await receiver.until(lambda receiver: receiver.to("tickets"))

        [held_back] = await alertmanager.inhibited()
        assert held_back["labels"]["cluster"] == "c1"
        [ticket] = receiver.to("tickets")
        assert [alert["labels"]["cluster"] for alert in ticket.alerts] == ["c2"]
        assert {group["receiver"]["name"] for group in await alertmanager.groups()} == {"pager", "tickets"}


def test_a_replacement_that_finds_nothing_is_refused(routes: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there is no 'https://gone'"):
        AlertmanagerServer(tmp_path, routes, replacements={"https://gone": "http://here"})


def test_a_wrong_rule_is_refused_in_the_words_of_promtool(tmp_path: Path) -> None:
    right = rule_file(tmp_path / "right.yml", "Hot", "temperature > 80")
    wrong = rule_file(tmp_path / "wrong.yml", "Hot", "temperature >")

    assert "1 rules found" in check_rules(right)
    with pytest.raises(ToolFailed, match=r'wrong\.yml: .*rule 1, "Hot": could not parse expression'):
        check_rules(right, wrong)


def test_configurations_are_checked(routes: Path, tmp_path: Path) -> None:
    rules = rule_file(tmp_path / "rules.yml", "Hot", "temperature > 80")
    right = written(tmp_path / "right.yml", Configuration(rule_files=[rules]).rendered())
    wrong = written(tmp_path / "wrong.yml", ROUTES.replace("receiver: pager", "receiver: nobody"))

    assert "1 rules found" in check_config(right)
    assert "SUCCESS" in check_alertmanager_config(routes)
    with pytest.raises(ToolFailed, match='undefined receiver "nobody"'):
        check_alertmanager_config(wrong)


def test_routes_are_followed(routes: Path) -> None:
    assert routed(routes, {"severity": "critical", "alertname": "Down"}) == ["pager"]
    assert routed(routes, {"severity": "warning"}) == ["tickets"]


def test_rules_are_tested(tmp_path: Path) -> None:
    rules = rule_file(tmp_path / "rules.yml", "Hot", "temperature > 80")
    expected = {"exp_labels": {"severity": "critical"}}

    assert "SUCCESS" in run_rule_tests(rule_test(tmp_path / "right.yml", rules, expected))
    with pytest.raises(ToolFailed, match="alertname: Hot, time: 1m"):
        run_rule_tests(rule_test(tmp_path / "wrong.yml", rules, {}))


def written(file: Path, text: str) -> Path:
    file.write_text(text)
    return file


def at(receiver: Receiver) -> dict[str, str]:
    return {"https://hooks.example.com": receiver.url}


def scraping(page: Page) -> Configuration:
    return Configuration(
        scrape_configs=[scrape("page", page.url)], scrape_interval="200ms", evaluation_interval="200ms"
    )


def rule_file(file: Path, alert: str, expression: str) -> Path:
    rule = {"alert": alert, "expr": expression, "labels": {"severity": "critical"}}
    return written(file, json.dumps({"groups": [{"name": "all", "rules": [rule]}]}))


def rule_test(file: Path, rules: Path, expected: Json) -> Path:
    """Says that the alert `Hot` is as `expected` in a minute."""
    case = {
        "interval": "1m",
        "input_series": [{"series": "temperature", "values": "90x2"}],
        "alert_rule_test": [{"eval_time": "1m", "alertname": "Hot", "exp_alerts": [expected]}],
    }
    return written(file, json.dumps({"rule_files": [str(rules)], "tests": [case]}))
