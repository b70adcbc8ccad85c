"""Edges of single checks: what they report, and what they leave alone."""

from pathlib import Path

import pytest

from tests.unit.posture.postures import HIGH_AND_LOW, Json, a_class, a_deployment, a_job, found_in, pod_spec


def test_a_job_that_ignores_disruptions_is_silent(tmp_path: Path) -> None:
    assert found_in(tmp_path, *HIGH_AND_LOW, a_job()) == []


@pytest.mark.parametrize(
    "job",
    [
        {"podFailurePolicy": None, "backoffLimit": 3},
        {"podFailurePolicy": None},
        {"podFailurePolicy": None, "backoffLimit": 1000, "backoffLimitPerIndex": 2},
        {"podFailurePolicy": {"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [1]}}]}},
        {
            "podFailurePolicy": {
                "rules": [
                    {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "False"}]},
                ]
            }
        },
    ],
)
def test_preemptions_that_use_up_retries_are_reported(tmp_path: Path, job: Json) -> None:
    assert found_in(tmp_path, *HIGH_AND_LOW, a_job(**job)) == [("retries-spent-on-preemptions", "Job ml/train")]


@pytest.mark.parametrize(
    ("classes", "job"),
    [
        (HIGH_AND_LOW, a_job(pod_spec(priorityClassName="high"), podFailurePolicy=None)),
        (HIGH_AND_LOW, a_job(podFailurePolicy=None, backoffLimit=100)),
        ((a_class("high", 9, preemptionPolicy="Never"), a_class("low", 1)), a_job(podFailurePolicy=None)),
        (HIGH_AND_LOW, a_job(pod_spec(gpus=0, priorityClassName="low"), podFailurePolicy=None)),
        (
            HIGH_AND_LOW,
            a_job(podFailurePolicy=None) | {"status": {"conditions": [{"type": "Complete", "status": "True"}]}},
        ),
    ],
    ids=["highest class", "many retries", "nobody preempts", "no GPU", "ended"],
)
def test_retries_that_preemptions_do_not_use_up_are_not_reported(
    tmp_path: Path, classes: tuple[Json, ...], job: Json
) -> None:
    assert found_in(tmp_path, *classes, job) == []


@pytest.mark.parametrize(
    ("script", "is_found"),
    [
        ("trap 'save; exit 0' TERM; python train.py & wait", True),
        ('trap "exit 0" SIGTERM\npython train.py & wait', True),
        ("trap 'exit 0' INT 15\npython train.py", True),
        ("stop() { save; exit 0; }\ntrap stop TERM\npython train.py", True),
        ("stop() { save; exit 143; }\ntrap stop TERM\npython train.py; exit 0", False),
        ("trap 'exit 0' INT\npython train.py", False),
        ("python train.py; exit 0", False),
    ],
)
def test_only_a_handler_of_sigterm_that_exits_with_0_makes_a_job_complete(
    tmp_path: Path, *, script: str, is_found: bool
) -> None:
    spec = pod_spec(priorityClassName="low")
    spec["containers"][0] |= {"command": ["/bin/sh", "-c"], "args": [script]}

    found = found_in(tmp_path, *HIGH_AND_LOW, a_job(spec))

    assert found == ([("preempted-but-complete", "Job ml/train")] if is_found else [])


def test_without_a_policy_a_deleted_pod_counts_as_failed_whatever_its_exit_code(tmp_path: Path) -> None:
    spec = pod_spec(priorityClassName="low")
    spec["containers"][0] |= {"command": ["/bin/sh", "-c", "trap 'exit 0' TERM; python train.py"]}

    without = a_job(spec, podFailurePolicy=None, backoffLimit=100)
    waiting = a_job(spec, podFailurePolicy=None, backoffLimit=100, podReplacementPolicy="Failed")

    assert found_in(tmp_path, *HIGH_AND_LOW, without) == []
    assert found_in(tmp_path, *HIGH_AND_LOW, waiting) == [("preempted-but-complete", "Job ml/train")]


@pytest.mark.parametrize(
    ("save", "grace", "is_found"),
    [
        ("90s", 60, True),
        ("90s", 90, False),
        ("31s", None, True),
        ("30s", None, False),
        ("1m30s", 89, True),
        ("1h", 3600, False),
        ("90", 600, True),
        ("", 600, True),
    ],
)
def test_a_grace_period_below_the_time_to_save_is_reported(
    tmp_path: Path, *, save: str, grace: int | None, is_found: bool
) -> None:
    terms = {} if grace is None else {"terminationGracePeriodSeconds": grace}
    job = a_job(pod_spec(priorityClassName="low", **terms), annotations={"gputally.io/save-duration": save})

    assert found_in(tmp_path, *HIGH_AND_LOW, job) == ([("grace-below-save-time", "Job ml/train")] if is_found else [])


@pytest.mark.parametrize(
    ("text", "is_found"),
    [
        ("must not preempt others", True),
        ("Never preempts.", True),
        ("waits, without preempting anyone", True),
        ("a non-preempting class", True),
        ("must not be preempted", False),
        ("never preempted", False),
        ("do not preempt: customers use it", False),
        ("non-preemptible", False),
        ("preempts all others", False),
    ],
)
def test_a_class_that_is_meant_not_to_preempt_is_known_by_its_description(
    tmp_path: Path, *, text: str, is_found: bool
) -> None:
    found = found_in(tmp_path, a_class("quiet", 1000, description=text), a_class("low", 100))

    assert found == ([("meant-not-to-preempt", "PriorityClass quiet")] if is_found else [])


def test_a_class_that_is_meant_not_to_preempt_is_known_by_its_name(tmp_path: Path) -> None:
    found = found_in(tmp_path, a_class("high-priority-nonpreempting", 1000), a_class("low", 100))

    assert found == [("meant-not-to-preempt", "PriorityClass high-priority-nonpreempting")]


def test_a_lone_class_with_never_is_not_at_the_bottom(tmp_path: Path) -> None:
    assert found_in(tmp_path, a_class("only", 100, preemptionPolicy="Never")) == []


def test_of_two_lowest_classes_the_one_with_never_is_reported(tmp_path: Path) -> None:
    lowest = (a_class("a", 100, preemptionPolicy="Never"), a_class("b", 100))

    assert found_in(tmp_path, *lowest) == []
    assert found_in(tmp_path, a_class("high", 1000), *lowest) == [("never-at-the-bottom", "PriorityClass a")]


def test_a_class_for_inference_and_training_is_neither(tmp_path: Path) -> None:
    both = a_deployment(pod_spec(priorityClassName="shared"), labels={"workload-type": "inference"})
    trains = a_job(pod_spec(priorityClassName="shared"))
    trains["spec"]["template"]["metadata"]["labels"] = {"workload-type": "training"}
    shared = a_class("shared", 500)

    assert found_in(tmp_path, shared, a_class("serving", 100), both, trains) == []
    assert found_in(tmp_path, a_class("training", 1000), shared, both, trains) == []


def test_the_api_server_refuses_large_values_and_second_defaults(tmp_path: Path) -> None:
    classes = (a_class("a", 2_000_000_000, globalDefault=True), a_class("b", 1, globalDefault=True))

    assert found_in(tmp_path, *classes) == [
        ("several-defaults", "PriorityClass a"),
        ("several-defaults", "PriorityClass b"),
        ("value-too-large", "PriorityClass a"),
    ]


def test_a_deployment_alone_does_not_serve_users(tmp_path: Path) -> None:
    classes = (a_class("training", 1000), a_class("low", 100))
    notebooks = pod_spec(priorityClassName="low")

    assert found_in(tmp_path, *classes, a_deployment(notebooks)) == []
    assert found_in(tmp_path, *classes, a_deployment(notebooks, labels={"workload-type": "inference"})) == [
        ("serving-below-training", "PriorityClass low")
    ]
    assert found_in(tmp_path, *classes, a_deployment(notebooks, labels={"example.com/workload-type": "serving"})) == [
        ("serving-below-training", "PriorityClass low")
    ]


def of_type(workload: Json, name: str) -> Json:
    workload["spec"]["template"].setdefault("metadata", {})["labels"] = {"workload-type": name}
    return workload


@pytest.mark.parametrize("workload", ["train", "training"])
def test_training_in_a_class_that_serves_users_is_reported(tmp_path: Path, workload: str) -> None:
    classes = (a_class("inference-critical", 1000), a_class("training-low", 100))
    job = of_type(a_job(pod_spec(priorityClassName="inference-critical")), workload)

    assert found_in(tmp_path, *classes, job) == [("training-in-serving-class", "Job ml/train")]


def test_serving_in_a_class_for_training_is_reported(tmp_path: Path) -> None:
    classes = (a_class("inference-critical", 1000), a_class("training-low", 100))
    serve = a_deployment(pod_spec(priorityClassName="training-low"), labels={"workload-type": "inference"})

    assert found_in(tmp_path, *classes, serve) == [("serving-in-training-class", "Deployment ml/serve")]


def test_workloads_in_classes_of_their_own_kind_or_of_none_are_not_reported(tmp_path: Path) -> None:
    classes = (a_class("inference", 1000), a_class("training", 100), a_class("plain", 50))
    right = (
        of_type(a_job(pod_spec(priorityClassName="training")), "training"),
        a_deployment(pod_spec(priorityClassName="inference"), labels={"workload-type": "inference"}),
    )
    of_no_kind = (
        a_job(pod_spec(priorityClassName="inference"), annotations={}) | {"metadata": {"name": "batch"}},
        of_type(a_job(pod_spec(priorityClassName="plain")) | {"metadata": {"name": "other"}}, "training"),
    )

    assert found_in(tmp_path, *classes, *right, *of_no_kind) == []


def test_a_pytorchjob_trains_without_a_label(tmp_path: Path) -> None:
    job = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": "llm", "namespace": "ml"},
        "spec": {
            "pytorchReplicaSpecs": {"Master": {"template": {"spec": pod_spec(priorityClassName="online")}}},
        },
    }

    assert found_in(tmp_path, a_class("online", 9), job) == [("training-in-serving-class", "PyTorchJob ml/llm")]


def test_training_in_a_serving_class_does_not_hide_that_the_class_is_below_training(tmp_path: Path) -> None:
    classes = (a_class("training", 1000), a_class("serving", 500))
    job = of_type(a_job(pod_spec(priorityClassName="serving")), "training")

    assert found_in(tmp_path, *classes, job) == [
        ("serving-below-training", "PriorityClass serving"),
        ("training-in-serving-class", "Job ml/train"),
    ]


def test_a_pod_without_class_and_without_default_is_reported(tmp_path: Path) -> None:
    assert found_in(tmp_path, *HIGH_AND_LOW, a_job(pod_spec())) == [("classified-by-default", "Job ml/train")]


def test_system_classes_exist_in_every_cluster(tmp_path: Path) -> None:
    job = a_job(pod_spec(priorityClassName="system-cluster-critical"))

    assert found_in(tmp_path, *HIGH_AND_LOW, job) == []


def test_an_annotation_of_the_template_accepts_a_finding(tmp_path: Path) -> None:
    accepted = {"gputally.io/posture-accept": "grace-below-save-time, retries-spent-on-preemptions"}

    assert found_in(tmp_path, *HIGH_AND_LOW, a_job(podFailurePolicy=None, annotations=accepted)) == []


@pytest.mark.parametrize(
    ("selector", "is_found"),
    [
        ({"matchLabels": {"app": "a"}}, True),
        ({}, True),
        ({"matchLabels": {"app": "b"}}, False),
        (None, False),
        ({"matchExpressions": [{"key": "app", "operator": "In", "values": ["a", "b"]}]}, True),
        ({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["a"]}]}, False),
        ({"matchExpressions": [{"key": "app", "operator": "Exists"}]}, True),
        ({"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}, False),
    ],
)
def test_a_budget_that_preemption_ignores_is_one_that_selects_the_pods(
    tmp_path: Path, *, selector: Json | None, is_found: bool
) -> None:
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "keep", "namespace": "ml"},
        "spec": {"maxUnavailable": "50%", "selector": selector},
    }

    found = found_in(
        tmp_path, *HIGH_AND_LOW, budget, a_deployment(pod_spec(priorityClassName="low"), labels={"app": "a"})
    )

    assert found == ([("budget-ignored-by-preemption", "PodDisruptionBudget ml/keep")] if is_found else [])
