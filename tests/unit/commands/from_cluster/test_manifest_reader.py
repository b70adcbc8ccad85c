"""Manifests: what is read, and how problems are reported."""

import json
import sys
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest

from gputally.commands.from_cluster.posture_sources import read_manifests
from gputally.errors import ConfigError
from gputally.model.rules import Rules
from gputally.posture.document import posture_of

CLASS = "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: a}\nvalue: 1\n"


def problems(tmp_path: Path, text: str) -> list[str]:
    file = tmp_path / "m.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError) as refused:
        read_manifests([file])
    return [str(each).removeprefix(f"{file}: ") for each in refused.value.problems]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            CLASS.replace("value: 1", "value: high"),
            "value: expected int, got str; write it as the Kubernetes API defines the field",
        ),
        (
            f"{CLASS}---\n{CLASS.replace('name: a', 'name: b').replace('value: 1', 'value: 1.5')}",
            "document 2: value: expected int, got float; write it as the Kubernetes API defines the field",
        ),
        (
            "apiVersion: v1\nkind: Pod\nmetadata: {name: a, labels: {on-call: yes}}\nspec: {containers: []}\n",
            "metadata.labels[...]: expected str, got bool; quote it",
        ),
        (CLASS.replace("{name: a}", "{}"), "metadata.name: is missing; add it"),
        (CLASS.replace("kind: PriorityClass\n", ""), "kind: is missing; each document is a Kubernetes object"),
        (
            CLASS.replace("apiVersion: scheduling.k8s.io/v1\n", ""),
            "apiVersion: is missing; each document is a Kubernetes object",
        ),
        ("- a\n- b\n", "is not a mapping; each document is a Kubernetes object"),
        (
            "kind: Configuration\ntiers: {preset: four-tier}\n",
            "kind: is a file of gputally, not of Kubernetes; name a Configuration with --config.file",
        ),
        (
            f"{CLASS}---\n{CLASS}",
            (
                "document 2: metadata.name: PriorityClass a is also in FILE: document 1; keep one, or name the files "
                "of one environment"
            ),
        ),
        (f"{CLASS}value: 2\n", "line 5, column 1: 'value' is already defined on line 4; keep one"),
        (
            f"{CLASS}---\nkind: [\n",
            (
                "document 2: line 7, column 1: while parsing a flow node, expected the node content, but found "
                "'<stream end>'; check indentation, quotes and brackets"
            ),
        ),
        (
            "metadata:\n  name: {{ .Release.Name }}\n",
            (
                "line 2, column 10: while constructing a mapping, found unhashable key; render templates first, as "
                "with helm template"
            ),
        ),
        (
            (
                "apiVersion: v1\nkind: List\nitems:\n  - apiVersion: batch/v1\n    kind: Job\n    metadata: {name: a}\n"
                "    spec: {backoffLimit: three}\n"
            ),
            ("items[0]: spec.backoffLimit: expected int, got str; write it as the Kubernetes API defines the field"),
        ),
    ],
)
def test_a_problem_names_document_field_and_remedy(tmp_path: Path, text: str, problem: str) -> None:
    assert problems(tmp_path, text) == [problem.replace("FILE", str(tmp_path / "m.yaml"))]


def test_all_problems_of_all_files_are_reported_at_once(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("kind: A\n")
    (tmp_path / "b.json").write_text("[]")
    (tmp_path / "ignored.txt").write_text("no manifest")

    with pytest.raises(ConfigError) as refused:
        read_manifests([tmp_path, tmp_path / "missing.yaml"])

    assert [Path(each.file).name for each in refused.value.problems] == ["a.yaml", "b.json", "missing.yaml"]


def test_a_folder_without_manifests_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"contains no manifests; it needs files that end in \.yaml, \.yml or \.json"):
        read_manifests([tmp_path])


def test_lists_of_kubectl_and_of_the_api_are_read(tmp_path: Path) -> None:
    of_api = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClassList", "items": [named("a"), named("b")]}
    whole = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"} | named("c")
    (tmp_path / "api.json").write_text(json.dumps(of_api))
    (tmp_path / "kubectl.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [whole]}))

    found = read_manifests([tmp_path])

    assert [each.metadata.name for each in found.priorityclasses or ()] == ["a", "b", "c"]


def named(name: str) -> dict[str, object]:
    return {"metadata": {"name": name}, "value": 1, "description": None}


def test_empty_documents_are_skipped_and_other_kinds_are_counted(tmp_path: Path) -> None:
    volcano = "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: v}\n"
    (tmp_path / "m.yaml").write_text(f"---\n# nothing\n---\n{CLASS}---\n{volcano}---\n")

    found = read_manifests([tmp_path / "m.yaml"])

    assert len(found.priorityclasses or ()) == 1
    assert found.jobs == ()
    assert found.ignored == {"Job.batch.volcano.sh": 1}
    assert found.unknown == ()


def test_objects_of_other_kinds_with_pods_are_named_if_these_may_have_gpus(tmp_path: Path) -> None:
    pods = "{containers: [{resources: {limits: {nvidia.com/gpu: 1}}}]}"
    volcano = f"apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {{name: v}}\nspec: {{tasks: [{pods}]}}\n"
    logs = "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: l}\nspec: {containers: [{name: c}]}\n"
    (tmp_path / "m.yaml").write_text(f"{CLASS}---\n{volcano}---\n{logs}")

    posture = posture_of(read_manifests([tmp_path / "m.yaml"]), Rules())
    assert posture.not_modelled == ("Job.batch.volcano.sh v",)
    assert posture.ignored == {}


def test_dates_and_anchors_are_read_as_the_api_server_does(tmp_path: Path) -> None:
    text = CLASS.replace("{name: a}", "&m {name: a, labels: {since: 2026-01-01}, creationTimestamp: null}")
    (tmp_path / "m.yaml").write_text(text)

    [found] = read_manifests([tmp_path / "m.yaml"]).priorityclasses or ()

    assert found.metadata.labels == {"since": "2026-01-01"}


def test_standard_input_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(CLASS.encode())))

    found = read_manifests([Path("-")])

    assert found.source == "standard input"
    assert len(found.priorityclasses or ()) == 1


def test_a_file_that_refers_to_itself_is_refused(tmp_path: Path) -> None:
    assert problems(
        tmp_path, "apiVersion: v1\nkind: List\nitems: &a\n  - apiVersion: v1\n    kind: List\n    items: *a\n"
    )
