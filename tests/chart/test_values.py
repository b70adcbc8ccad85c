"""Invalid values are rejected before anything is installed, and values of older charts still render."""

import json
import re
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from gputally.config.prices import CURRENCIES
from gputally.config.read import check
from gputally.config.tiers import PRESETS
from tests.chart.helm import CHART, IMAGED, RELEASE, Refused, objects, rendered, run
from tests.chart.matrix import MATRIX, MONITORED, MUTUAL

SCHEMA: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text())
VALUES: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())
BAD = Path(__file__).parents[1] / "unit" / "config"
FREE = {"Shared with the charts beside this one, whose keys are theirs.", "Of many kinds: the API server checks them."}
NATIVE = {"nodeAffinity", "podAffinity", "podAntiAffinity", "valueFrom"}
"""Fields passed to Kubernetes unchanged: the API server validates them."""

BEYOND_A_SCHEMA = {
    "configuration": {
        "tiers.rules[0].class": "an RE2 regular expression",
        "tiers.rules[1].tier": "names groups of a regular expression",
        "tiers.rules[2]": "compares rules",
        "tiers.rules[3].max_priority": "compares fields",
        "tiers.rules[5].max_priority": "Helm reads 1e3 as an integer and writes 1000",
        "tenants.rules[3].matches": "an RE2 regular expression",
        "resources.defaults": "Helm reads `no` as false and writes that",
        "line 56": "YAML that Helm does not accept",
    },
    "priceBook": {
        "tiers.gold": "depends on the prices",
        "rules[4].prices[1].effective_from": "compares dates",
        "rules[4].prices[2].effective_from": "compares dates",
        "rules[4].prices[3].price": "Helm reads 1e3 as a number and writes 1000",
        "rules[6]": "compares rules",
        "rules[7]": "compares rules",
        "rules[13]": "compares rules",
    },
}
"""Problems that only `gputally check` finds, with the reason: the pod does not start, and its log names them."""


@pytest.mark.parametrize(("section", "name"), [("configuration", "bad_config"), ("priceBook", "bad_prices")])
def test_the_schema_rejects_every_problem_that_a_schema_can_express(section: str, name: str, tmp_path: Path) -> None:
    text = re.sub(r"^[?:] .*\n", "", (BAD / f"{name}.yaml").read_text(), flags=re.MULTILINE)
    refused = refusals(f"{section}:\n" + re.sub("^", "  ", text, flags=re.MULTILINE), tmp_path)

    problems = [problem.field or problem.text.partition(":")[0] for problem in check([BAD / f"{name}.yaml"])]

    missed = {field for field in problems if not any(covers(each, f"{section}.{field}") for each in refused)}
    assert missed == BEYOND_A_SCHEMA[section].keys()


def refusals(values: str, scratch: Path) -> set[str]:
    """The fields that Helm rejects, spelled as `gputally check` spells them."""
    with pytest.raises(Refused) as refused:
        rendered(values, scratch)
    return set(spelled(str(refused.value)))


def spelled(message: str) -> Iterator[str]:
    for pointer, said in re.findall(r"at '/(\S+)': (.*)", message):
        path = re.sub(r"/(\d+)(?=/|$)", r"[\1]", pointer).replace("/", ".").replace("~1", "/")
        names = re.findall(r"'([^']+)'", said) if re.match(r"additional properties|missing property", said) else []
        yield from (f"{path}.{name}" for name in names)
        is_outer = said.endswith(("failed", "failed, No schema matched")) and said != "'not' failed"
        yield from () if names or is_outer else (path,)
        equal = re.match(r"items at \d+ and (\d+) are equal", said)
        yield from (f"{path}[{equal[1]}]",) if equal else ()


def covers(refused: str, field: str) -> bool:
    return re.sub(r'\["(.*?)"\]', r".\1", field) == refused


@pytest.mark.parametrize(
    "values",
    [
        {"agent": {"nodeselector": {}}},
        {"unheard": {}},
        {"aggregator": {"replicas": 2}},
        {"aggregator": {"strategy": {"type": "RollingUpdate"}}},
        {"agent": {"resources": {"limits": {"nvidia.com/gpu": 1}}}},
        {"agent": {"interval": 6}},
        {"agent": {"web": {"existingSecret": "a", "config": {"basic_auth_users": {"a": f"$2b$10${'a' * 53}"}}}}},
        {"aggregator": {"web": {"config": {"basic_auth_users": {"a": "secret"}}}}},
        {"aggregator": {"web": {"config": {"tls_server_config": {"cert_file": "a"}}}}},
        {"rbac": {"extraRules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]}},
        {"rbac": {"extraRules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["delete"]}]}},
        {"rbac": {"extraRules": [{"apiGroups": [""], "resources": ["nodes/proxy"], "verbs": ["get"]}]}},
        {"agent": {"web": {"existingSecret": "a"}}},
        {"ledger": {"annotations": {"helm.sh/resource-policy": "delete"}}},
        {"ledger": {"retention": "400 days"}},
        {"image": {"digest": "sha256:short"}},
        {"commonLabels": {"app.kubernetes.io/name": "other"}},
        {"agent": {"web": {"config": {"tls_server_config": {"cert_file": "a", "key_file": "b"}}}}},
        {"agent": {"web": MUTUAL}, "aggregator": {"agentsTls": {"caSecret": "authority"}}},
        {"serviceMonitor": {"interval": "often"}},
        {"priceBook": {"rules": []}},
        {"configuration": {"resources": {"rules": [{"pattern": "cpu"}]}}},
        {"configuration": {"pools": {"labels": ["my pool"]}}},
        {"configuration": {"tenants": {"rules": [{"from": "namespace", "tenant": "other"}]}}},
        {"priceBook": {"currency": "USD", "basis": "node"}},
    ],
    ids=str,
)
def test_invalid_values_are_rejected(values: object, tmp_path: Path) -> None:
    with pytest.raises(Refused, match="don't meet the specifications of the schema"):
        rendered(values, tmp_path)


def test_permissions_are_not_granted_to_the_default_service_account(tmp_path: Path) -> None:
    with pytest.raises(Refused, match=r"serviceAccount\.name: name the account"):
        rendered({"serviceAccount": {"create": False}}, tmp_path)


@pytest.mark.parametrize(
    ("written", "kept"),
    [("2.21", "2.21"), ('"2.10"', '"2.10"'), ("1000000", "1000000"), ("0.123456789012", "0.123456789012")],
)
def test_a_price_keeps_all_its_digits(written: str, kept: str, tmp_path: Path) -> None:
    rule = f"{{match: {{default: true}}, effective_from: always, price: {written}}}"

    manifests = rendered(f"priceBook: {{currency: USD, basis: node, rules: [{rule}]}}", tmp_path)

    assert f"price: {kept}\n" in manifests


@pytest.mark.parametrize("written", ["0.1234567890123", "0.00001", "-1", "1000000.5", '"1,5"'])
def test_a_price_that_would_lose_digits_is_rejected(written: str, tmp_path: Path) -> None:
    rule = f"{{match: {{default: true}}, effective_from: always, price: {written}}}"

    with pytest.raises(Refused, match="/price"):
        rendered(f"priceBook: {{currency: USD, basis: node, rules: [{rule}]}}", tmp_path)


def test_the_schema_rejects_unknown_fields_in_every_object() -> None:
    assert list(lenient(SCHEMA, "")) == []


def lenient(node: object, path: str) -> Iterator[str]:
    """The paths of objects that accept unknown fields."""
    if isinstance(node, dict):
        if node.get("type") == "object" and "additionalProperties" not in node and node.get("$comment") not in FREE:
            yield from () if path.rpartition(".")[2] in NATIVE else (path,)
        for key, value in node.items():
            yield from lenient(value, f"{path}.{key}")


def test_the_schema_and_the_values_name_the_same_fields() -> None:
    assert SCHEMA["properties"].keys() == VALUES.keys()
    for section, values in VALUES.items():
        described = resolved(SCHEMA["properties"][section])
        if isinstance(values, dict) and values and described.get("additionalProperties") is False:
            assert described["properties"].keys() == values.keys(), section


def resolved(node: dict[str, Any]) -> dict[str, Any]:
    name = node.get("$ref", "").rpartition("/")[2]
    found: dict[str, Any] = SCHEMA["definitions"][name] if name else node
    return found


def test_the_schema_has_the_presets_and_currencies_of_the_program() -> None:
    definitions = SCHEMA["definitions"]

    assert definitions["configuration"]["properties"]["tiers"]["properties"]["preset"]["enum"] == list(PRESETS)
    assert definitions["priceBook"]["properties"]["currency"]["enum"] == sorted(CURRENCIES)


def test_the_schema_has_all_alert_groups() -> None:
    groups = SCHEMA["properties"]["prometheusRule"]["properties"]["exclude"]["items"]["enum"]

    assert groups == sorted(path.stem for path in (CHART / "files/rules").iterdir())


@pytest.mark.parametrize(
    "kept", ["{}", *(f"{{{section}: {{}}}}" for section in VALUES if isinstance(VALUES[section], dict))]
)
def test_values_of_an_older_chart_render_like_the_defaults(kept: str, tmp_path: Path) -> None:
    older = shutil.copytree(CHART, tmp_path / "gputally")
    (older / "values.yaml").write_text(kept)  # `helm upgrade --reuse-values` uses these instead of the chart's

    assert as_installed(older) == as_installed(CHART)


@cache
def as_installed(chart: Path) -> list[Any]:
    """The objects rendered without values, except the random token."""
    return [{**each, "data": None} for each in objects(run("template", RELEASE, str(chart), *IMAGED))]


@pytest.mark.parametrize("section", [name for name, value in VALUES.items() if isinstance(value, dict) and value])
def test_all_objects_render_with_an_empty_section(section: str, tmp_path: Path) -> None:
    older = shutil.copytree(CHART, tmp_path / "gputally")
    emptied = {key: type(value)() if isinstance(value, dict) else value for key, value in VALUES[section].items()}
    (older / "values.yaml").write_text(yaml.safe_dump(VALUES | {section: emptied}))

    rendered({**MATRIX["guarded"], **MONITORED}, tmp_path, chart=older)


def test_null_removes_a_default(tmp_path: Path) -> None:
    values = {"agent": {"nodeSelector": {"nvidia.com/gpu.present": None}, "tolerations": []}}

    [agent] = [each for each in objects(rendered(values, tmp_path)) if each["kind"] == "DaemonSet"]
    assert not {"nodeSelector", "tolerations"} & agent["spec"]["template"]["spec"].keys()
