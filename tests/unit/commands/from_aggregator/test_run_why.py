"""`gputally why` and `gputally what-if` as separate processes, answered by an aggregator's own routes."""

import json
import os
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web
from msgspec.structs import replace

from gputally.accounting.fleet.pending_now import PendingNow
from gputally.web.pending_routes import BODIES, PendingRoutes
from gputally.web.server import serve
from tests.fakes.command import done, run, start
from tests.unit.answers.pending_world import H100, Past, holds, node, waits, world
from tests.unit.web.test_server import site

SECRET = "hunter2"


def state(*, with_room: bool) -> PendingNow:
    del with_room
    return world([node("g1", 4)], [holds("b", 4, on="g1"), waits("a", 4), waits("gpu-pod", 8, namespace="lab")])


@pytest.fixture
async def url() -> AsyncIterator[str]:
    what = replace(site(routes=PendingRoutes(state, Past()).routes()), bodies=BODIES)
    async with serve(what, addresses=["127.0.0.1:0"]) as [address]:
        yield f"http://{address}"


async def test_the_first_line_answers_for_a_pod(url: str) -> None:
    found = await run("why", "-n", "ml", "a", "--url", url)

    assert (found.status, found.err) == (0, "")
    assert found.out.startswith(
        "ml/a has waited 59 min for 4 GPUs, 8.84 EUR per hour: pods of the same or a higher priority hold\n"
    )


async def test_a_bare_word_is_a_namespace_or_else_the_only_pod_of_that_name(url: str) -> None:
    namespace = await run("why", "ml", "--url", url)
    pod = await run("why", "gpu-pod", "--url", url)
    nothing = await run("why", "nothing", "--url", url)

    assert namespace.out.startswith("1 pod in namespace ml waits for 4 GPUs: ")
    assert pod.out.startswith("lab/gpu-pod has waited 59 min for 8 GPUs")
    assert (nothing.status, nothing.out) == (12, "")
    assert nothing.err == "gputally: no pod with GPUs is known of namespace nothing; check the name\n"


async def test_a_namespace_that_exists_has_no_waiting_pods_and_an_unknown_tenant_is_named(url: str) -> None:
    quiet, nobody = await run("why", "quiet", "--url", url), await run("why", "--tenant", "nobody", "--url", url)

    assert (quiet.status, quiet.out) == (0, "No pod in namespace quiet waits for GPUs.\n")
    assert (nobody.status, nobody.err) == (
        12,
        "gputally: no pod with GPUs is known of tenant nobody; check the name\n",
    )


async def test_json_is_the_response_of_the_api(url: str) -> None:
    found = await run("why", "--all", "--url", url, "--output", "json")

    assert [each["pod"] for each in json.loads(found.out)["pods"]] == ["a", "gpu-pod"]


async def test_a_pod_that_is_not_known_has_a_status_of_its_own(url: str) -> None:
    found = await run("why", "lab/a", "--url", url)

    assert (found.status, found.out) == (12, "")
    assert found.err == "gputally: no pod with GPUs is known as lab/a; did you mean ml/a?\n"


async def test_another_server_is_not_mistaken_for_a_pod_that_is_unknown() -> None:
    async with serve(site(), addresses=["127.0.0.1:0"]) as [address]:
        found = await run("why", "lab/a", "--url", f"http://{address}")

    assert found.status == 8
    assert found.err.endswith("HTTP 404: this is no aggregator of gputally, or an older one; check --url\n")


async def test_as_a_plugin_it_reaches_the_aggregator_through_kubectl(url: str, tmp_path: Path) -> None:
    kubectl = tmp_path / "kubectl"
    port = url.rpartition(":")[2]
    kubectl.write_text(
        f'#!/bin/sh\necho "$@" > {tmp_path}/arguments\necho "Forwarding from 127.0.0.1:{port} -> 9836"\nexec sleep 60\n'
    )
    kubectl.chmod(stat.S_IRWXU)
    path = f"{tmp_path}:{os.environ['PATH']}"
    found = await done(await start("why", "-n", "ml", "a", "--context", "lab", environment={"PATH": path}))

    assert (found.status, found.err) == (0, "")
    assert (tmp_path / "arguments").read_text().split() == [
        *("--context=lab", "--namespace=gputally", "port-forward", "service/gputally-aggregator", ":9836"),
    ]


MANIFEST = f"""
apiVersion: v1
kind: Secret
metadata: {{name: s}}
stringData: {{password: {SECRET}}}
---
apiVersion: batch/v1
kind: Job
metadata: {{name: train}}
spec:
  parallelism: 2
  template:
    spec:
      containers:
        - name: main
          image: registry/train:1
          command: [train, --password={SECRET}]
          env: [{{name: PASSWORD, value: {SECRET}}}]
          resources: {{limits: {{nvidia.com/gpu: 2}}}}
      initContainers:
        - env: [{{name: PASSWORD, value: {SECRET}}}]
"""


async def test_a_manifest_is_sent_without_what_may_be_secret(url: str, tmp_path: Path) -> None:
    file, bodies = tmp_path / "job.yaml", list[bytes]()
    file.write_text(MANIFEST)

    async def record(request: web.Request) -> web.Response:
        bodies.append(await request.read())
        return web.json_response(status=400, text="recorded")

    recording = replace(site(routes=(web.post("/api/v1/what-if", record),)), bodies=BODIES)
    async with serve(recording, addresses=["127.0.0.1:0"]) as [address]:
        await run("what-if", file, "--url", f"http://{address}")
    found = await run("what-if", file, "--namespace", "ml", "--url", url)

    assert len(bodies) == 1
    assert SECRET.encode() not in bodies[0]
    assert b"nvidia.com/gpu" in bodies[0]
    assert found.out.startswith("Job ml/train: 2 pods with 2 GPUs each would wait: ")


async def test_parameters_are_a_pod(url: str) -> None:
    found = await run("what-if", "--gpus", "2", "--model", "h100", "--cpu", "4", "--url", url)

    assert (found.status, found.err) == (0, "")
    assert found.out.startswith("1 pod with 2 GPUs would wait: ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("what-if",), "--gpus: is missing; say how many GPUs a pod needs, or name a FILE"),
        (("what-if", "x.yaml", "--cpu", "4"), "--cpu: cannot be combined with FILE; omit one of them"),
        (("what-if", "none.yaml"), "none.yaml: cannot be read: No such file or directory"),
        (("why", "ml/a", "--all"), "--all: cannot be combined with WHAT; omit one of them"),
        (("why", "ml/a", "--url", "x"), "--url: 'x' is not a URL; use one such as http://localhost:9836"),
    ],
)
async def test_wrong_flags_are_named_before_anything_is_asked(arguments: tuple[str, ...], message: str) -> None:
    found = await run(*arguments)

    assert (found.status, found.err) == (2, f"gputally: {message}\n")


async def test_a_file_that_is_too_large_for_a_request_names_the_limit(url: str, tmp_path: Path) -> None:
    file = tmp_path / "large.yaml"
    labels = "\n".join(f"    label-{number}: {'x' * 60}" for number in range(4000))
    file.write_text(f"apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n  labels:\n{labels}\nspec: {{containers: []}}\n")

    found = await run("what-if", file, "--url", url)

    assert (found.status, found.out) == (2, "")
    assert "large.yaml: has 3" in found.err
    assert "bytes of pod templates, and the aggregator reads 262,144 at most; split it" in found.err


async def test_a_file_without_workloads_names_what_can_be_forecast(tmp_path: Path) -> None:
    file = tmp_path / "node.yaml"
    file.write_text("{apiVersion: v1, kind: Node, metadata: {name: a}}")
    found = await run("what-if", file, "--url", "http://127.0.0.1:9")

    assert found.status == 2
    assert found.err.startswith(f"gputally: {file}: has no object that creates pods; use one of Pod, Job, ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--gpus", "1", "--class", "x"), "--class: PriorityClass 'x' does not exist; there are none known"),
        (("--gpus", "1", "--model", "V100"), f"--model: no node has a GPU model like 'V100'; there are {H100}"),
    ],
)
async def test_what_the_aggregator_rejects_names_the_flag(url: str, arguments: tuple[str, ...], message: str) -> None:
    found = await run("what-if", *arguments, "--url", url)

    assert (found.status, found.out, found.err) == (2, "", f"gputally: {message}\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("what-if", "--gpus", "0"), "argument --gpus: '0' is not valid; use a number from 1 to 10000"),
        (("what-if", "--cpu", "many"), "argument --cpu: 'many' is not a quantity; use one such as 4"),
        (("fits", "--cpu", "none"), "argument --cpu: 'none' is not a quantity; use one such as 4"),
    ],
)
async def test_a_value_that_is_wrong_anywhere_is_not_sent(arguments: tuple[str, ...], message: str) -> None:
    found = await run(*arguments, "--url", "http://127.0.0.1:9")

    assert (found.status, found.err.splitlines()[-1]) == (2, f"gputally {arguments[0]}: error: {message}")


async def test_a_manifest_that_is_rejected_is_named_with_its_object(url: str, tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text("{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {parallelism: many}}")
    found = await run("what-if", file, "--url", url)

    assert found.status == 2
    assert found.err.startswith(f"gputally: {file}: Job default/a: Expected `int | null`, got `str`")


async def test_arguments_that_are_no_text_or_control_the_terminal_are_shown_as_such(url: str) -> None:
    broken = await run("why", os.fsdecode(b"ml/\xff"), "--url", url)
    escaped = await run("why", "a/b/c/\x1b[31m", "--url", url)

    assert (broken.status, broken.err) == (2, "gputally: WHAT: 'ml/\\udcff' is not UTF-8 text\n")
    assert escaped.status == 2
    assert "\x1b" not in escaped.err


async def test_gpu_workloads_of_other_kinds_are_named_as_not_evaluated(url: str, tmp_path: Path) -> None:
    file = tmp_path / "all.yaml"
    pods = "spec: {containers: [{resources: {limits: {nvidia.com/gpu: 1}}}], priorityClassName: new}"
    file.write_text(
        f"{{apiVersion: v1, kind: Pod, metadata: {{name: a}}, {pods}}}\n---\n"
        "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: new}, value: 9}\n---\n"
        "{apiVersion: v1, kind: Pod, metadata: {name: c}, spec: {priorityClassName: other, containers: [{}]}}\n---\n"
        f"{{apiVersion: apps/v1, kind: DaemonSet, metadata: {{name: agent}}, spec: {{template: {{{pods}}}}}}}\n---\n"
        "{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: logs}, spec: {template: {spec: {}}}}\n---\n"
        "{apiVersion: ray.io/v1, kind: RayJob, metadata: {name: b, namespace: ml}, "
        f"spec: {{entrypoint: secret, rayClusterSpec: {{headGroupSpec: {{template: {{{pods}}}}}}}}}}}\n"
    )
    found = await run("what-if", file, "--url", url)

    assert found.status == 0
    assert "Class       new, priority 9, " in found.out
    named = "DaemonSet agent, RayJob.ray.io ml/b"
    assert found.err == f"gputally: not evaluated, as pods of their kinds are not modelled: {named}\n"
    printed = await run("what-if", file, "--url", url, "--output", "json")
    assert json.loads(printed.out)["not_modelled"] == ["DaemonSet agent", "RayJob.ray.io ml/b"]


async def test_a_volcano_job_alone_is_evaluated(url: str, tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    pods = "{spec: {containers: [{resources: {limits: {nvidia.com/gpu: 1}}}]}}"
    file.write_text(
        "{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, metadata: {name: a, namespace: ml}, "
        f"spec: {{tasks: [{{name: worker, replicas: 2, template: {pods}}}]}}}}\n"
    )
    found = await run("what-if", file, "--url", url)

    assert (found.status, found.err) == (0, "")
    assert found.out.startswith("VolcanoJob ml/a worker: ")


async def test_an_unknown_kind_alone_says_so_by_name(url: str, tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(
        "{apiVersion: ray.io/v1, kind: RayJob, metadata: {name: b}, spec: {x: {containers: [{env: [secret]}]}}}\n"
    )
    found = await run("what-if", file, "--url", url)

    assert found.status == 2
    assert found.err.startswith(f"gputally: {file}: the pods of RayJob.ray.io b are not modelled; use one of Pod, ")


async def test_fits_prints_what_fits_now_as_text_and_json(url: str) -> None:
    text, document = await run("fits", "--url", url), await run("fits", "--url", url, "--cpu", "2", "--output", "json")

    assert (text.status, text.err) == (0, "")
    assert text.out.startswith("0 GPUs are free. Pods that fit now, each size by itself, with 1 CPU and 1 GiB memory")
    assert json.loads(document.out)["cpu_cores"] == 2


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (
            ("--model", "B200"),
            "gputally: --model: no node has a GPU model like 'B200'; there are NVIDIA-H100-80GB-HBM3\n",
        ),
    ],
)
async def test_fits_names_the_flag_that_is_wrong(url: str, flags: tuple[str, str], message: str) -> None:
    found = await run("fits", "--url", url, *flags)

    assert (found.status, found.out, found.err) == (2, "", message)
