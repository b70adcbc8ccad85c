"""The command `gputally posture` on files."""

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from gputally.cli import COMMANDS, main
from gputally.ledger.open_to_write import open_ledger
from tests.contract.records import BY, CLASS_VERSION, PREEMPTION, step, us
from tests.unit.posture.postures import MANIFESTS


def written(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    main(["posture", *arguments])
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["s2.yaml"], 1),
        (["s2.yaml", "--exit-zero"], 0),
        (["s2-corrected.yaml"], 0),
        (["missing.yaml"], 2),
        (["missing.yaml", "--exit-zero"], 2),
        (["s2.yaml", "--context", "prod"], 2),
        (["s2.yaml", "--config.file", "missing.yaml"], 2),
    ],
)
def test_the_exit_status(
    arguments: list[str], status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(MANIFESTS)

    assert main(["posture", *arguments]) == status
    assert bool(capsys.readouterr().err) == (status == 2)


def test_the_configuration_names_tiers_and_what_serves(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    configuration = tmp_path / "config.yaml"
    configuration.write_text(
        "kind: Configuration\ntiers:\n  rules:\n    - {tier: 'team-{1}', class: 'gpu-(.*)'}\nserving: []\n"
    )
    arguments = (str(MANIFESTS / "s2.yaml"), "--config.file", str(configuration), "--output", "json")

    document = json.loads(written(capsys, *arguments))

    assert [each["tier"] for each in document["classes"]] == [
        "team-training",
        "team-serving",
        "team-batch",
        "team-interactive",
    ]
    assert "serving-below-training" not in [each["check"] for each in document["findings"]]


@pytest.fixture
def ledger(tmp_path: Path) -> str:
    """Serving was preempted by batch, which nothing permits, and got a higher value on that day.

    What a queue did by its own rules is not of interest.
    """
    path = tmp_path / "ledger.db"
    noon = us(43_200)
    found = replace(PREEMPTION, victim_tier="gpu-serving", by=replace(BY, preemptor_tier="gpu-batch"), decided_us=noon)
    older = replace(CLASS_VERSION, name="gpu-serving", value=500, is_default=False, from_us=noon - 9, to_us=noon)
    newer = replace(older, value=800, from_us=noon, to_us=None)
    classes = {(each.name, each.from_us): each for each in (older, newer)}
    queued = replace(found, victim_uid="b", by=replace(BY, queue_rule="InClusterQueue"))
    with open_ledger(str(path)) as ledger:
        ledger.write(step(at=86_400, victims={"a": found, "b": queued}, priority_classes=classes))
    return str(path)


@pytest.mark.parametrize("output", ["table", "markdown", "html"])
def test_what_was_observed_is_beside_what_is_permitted(
    output: str, ledger: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = written(capsys, str(MANIFESTS / "s2.yaml"), "--ledger", ledger, "--window", "1d", "--output", output)

    assert "Observed preemptions" in text
    assert "1, not permitted (!)" in text
    assert "gpu-batch preempted gpu-serving 1 time, which no class permits" in " ".join(text.split())
    assert "value 800 instead of 500" in text


def test_the_document_has_every_pair_of_tiers(ledger: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("--ledger", ledger, "--window", "1d", "--output", "json")

    document = json.loads(written(capsys, str(MANIFESTS / "s2.yaml"), *arguments))

    pairs = {(each["preemptor"], each["victim"]): each for each in document["observed"]["pairs"]}
    assert (pairs["gpu-batch", "gpu-serving"]["observed"], pairs["gpu-batch", "gpu-serving"]["permitted"]) == (1, False)
    assert (pairs["gpu-serving", "gpu-batch"]["observed"], pairs["gpu-serving", "gpu-batch"]["permitted"]) == (0, True)
    assert [(each["name"], each["what"]) for each in document["class_changes"]][-1] == (
        "gpu-serving",
        "value 800 instead of 500",
    )


def test_without_a_ledger_nothing_was_observed(capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(written(capsys, str(MANIFESTS / "s2.yaml"), "--output", "json"))

    assert (document["observed"], document["class_changes"]) == (None, None)


def test_a_window_without_accounting_and_a_missing_ledger_are_errors(
    ledger: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(MANIFESTS / "s2.yaml")

    assert main(["posture", file, "--ledger", ledger, "--window", "2020"]) == 2
    assert "--window: nothing is accounted in '2020'" in capsys.readouterr().err
    assert main(["posture", file, "--ledger", f"{ledger}.missing"]) == 4


def test_the_plugin_of_kubectl_runs_it_on_this_machine() -> None:
    assert [each.runs_in_pod for each in COMMANDS if each.name == "posture"] == [False]


def test_the_json_document(capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(written(capsys, str(MANIFESTS / "s2.yaml"), "--output", "json"))

    assert (document["version"], document["source"]) == (1, str(MANIFESTS / "s2.yaml"))
    assert document["quotas"][1] == {
        "namespace": "tenant-alpha",
        "name": "training",
        "scope": "gpu-training",
        "resource": "nvidia.com/gpu",
        "hard": 6,
        "used": None,
        "headroom": None,
        "invalid": "",
    }
    assert document["capacity"] == {"nodes": 2, "physical": 16, "offered": {"nvidia.com/gpu": 16}}
    assert document["sums"] == [{"resource": "nvidia.com/gpu", "hard": 8, "offered": 16}]
    assert document["findings"][0]["object"] == {"kind": "PyTorchJob", "namespace": "tenant-alpha", "name": "llm-70b"}


def test_what_is_unknown_is_null_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(written(capsys, str(MANIFESTS / "s1.yaml"), "--output", "json"))

    assert document["capacity"] is None
    assert document["unchecked"][0]["resource"] == "nodes"


@pytest.mark.parametrize("output", ["table", "markdown", "html"])
def test_names_are_text_and_never_markup(tmp_path: Path, output: str, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "m.yaml"
    file.write_text(
        "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nvalue: 1\n"
        'metadata: {name: "<b>a|b</b>\\e[31m"}\npreemptionPolicy: "*[x](y)*"\n'
    )

    text = written(capsys, str(file), "--output", output)

    assert "\x1b" not in text
    if output == "html":
        assert "<b>" not in text
    if output == "markdown":
        assert "\\*\\[x\\](y)\\*" in text
        assert "<b>a|" not in text.replace("\\", "")[: text.index("##")]


def test_the_page_loads_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    text = written(capsys, str(MANIFESTS / "s2.yaml"), "--output", "html")

    assert text.startswith("<!doctype html>")
    assert not any(each in text for each in ("<script", "http://", "https://", "@import", "url("))


def test_findings_that_say_the_same_are_one_paragraph(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    template = (
        "apiVersion: batch/v1\nkind: Job\nmetadata: {name: run-%d, namespace: ml}\nspec: {template: {spec: "
        "{containers: [{name: a, resources: {limits: {nvidia.com/gpu: 1}}}], priorityClassName: a}}}\n"
    )
    file = tmp_path / "m.yaml"
    file.write_text("---\n".join(template % number for number in range(12)))

    text = " ".join(written(capsys, str(file)).split())

    assert text.count("retries-spent-on-preemptions: Job ml/run-0") == 1
    assert "Job ml/run-7 and 2 more what:" in text
    assert "12 warnings" in text
