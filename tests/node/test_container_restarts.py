"""A real kubelet restarts containers in place: what they had done is lost work, though the pod keeps its GPUs."""

from collections.abc import Sequence

import pytest

from gputally.model.units import GPU_SECOND, US_PER_SECOND
from tests.behaviour.product import Samples, total
from tests.behaviour.recorder import Recorder, until
from tests.cluster.manifests import Json
from tests.cluster.objects import condition, container_state, seconds
from tests.node.images import BUSYBOX_IMAGE
from tests.node.node import node_pod
from tests.node.scene import Scene

pytestmark = pytest.mark.node

LOST = "gputally_disruption_lost_gpu_seconds_total"
RESTARTS = "gputally_disruptions_total"
STATE: Json = {"name": "state", "mountPath": "/state"}
RULE: Json = {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [42]}}
"""On by default since Kubernetes 1.36."""


def exits_once(name: str, code: int) -> list[str]:
    """A command that fails in its first run, and runs on in its second one: the volume of a pod outlives containers."""
    first = f"touch /state/{name}; sleep 5; exit {code}"
    return ["sh", "-c", f"[ -e /state/{name} ] && exec sleep 1000000; {first}"]


def pod(scene: Scene, name: str, *, gpus: int, restart: str = "Never", main: Json | None = None) -> Json:
    """A pod whose container `main` has the GPUs."""
    found = node_pod(name, scene.place, gpus=gpus, restartPolicy=restart, volumes=[{"name": "state", "emptyDir": {}}])
    found["spec"]["containers"][0] |= {"volumeMounts": [STATE]} | (main or {})
    return found


def with_watcher(found: Json) -> Json:
    """The pod with a container without GPUs that makes its kubelet restart all of them."""
    watcher = {"name": "watcher", "image": BUSYBOX_IMAGE.reference, "imagePullPolicy": "Never", "volumeMounts": [STATE]}
    watcher |= {"command": exits_once("watcher", 42), "restartPolicy": "Never", "restartPolicyRules": [RULE]}
    found["spec"]["containers"].append(watcher)
    return found


async def test_a_container_that_fails_loses_its_run_by_the_times_that_its_kubelet_reports(scene: Scene) -> None:
    async with Recorder(scene.api, fieldSelector=f"metadata.namespace={scene.place}") as recorder:
        crashing = {"command": exits_once("main", 3)}
        forms = await restarted(scene, recorder, pod(scene, "alone", gpus=2, restart="Always", main=crashing))

    run = status_of(forms[-1])["lastState"]["terminated"]
    assert run["exitCode"] == 3
    await assert_lost(scene, forms[-1], from_s=seconds(run["startedAt"]), to_s=seconds(run["finishedAt"]))


async def test_a_container_whose_exit_restarts_all_loses_its_run_up_to_its_exit(scene: Scene) -> None:
    async with Recorder(scene.api, fieldSelector=f"metadata.namespace={scene.place}") as recorder:
        main = {"command": exits_once("main", 42), "restartPolicy": "Never", "restartPolicyRules": [RULE]}
        forms = await restarted(scene, recorder, pod(scene, "own", gpus=3, main=main))

    run = next(found for form in forms if (found := container_state(form, "terminated")))
    await assert_lost(scene, forms[-1], from_s=seconds(run["startedAt"]), to_s=seconds(run["finishedAt"]))


async def test_a_container_that_another_one_restarts_loses_its_run_up_to_the_restart(scene: Scene) -> None:
    """Its kubelet kills and removes it, and reports no times of the run: the condition says when."""
    async with Recorder(scene.api, fieldSelector=f"metadata.namespace={scene.place}") as recorder:
        forms = await restarted(scene, recorder, with_watcher(pod(scene, "both", gpus=4)))

    last = status_of(forms[-1])["lastState"]["terminated"]
    assert last["reason"] == "RestartingAllContainers"
    assert not last.get("finishedAt")
    [began] = {seconds(run["startedAt"]) for form in before_restart(forms) if (run := container_state(form, "running"))}
    ended = next(found for form in forms if (found := condition(form, "AllContainersRestarting"))["status"] == "True")
    await assert_lost(scene, forms[-1], from_s=began, to_s=seconds(ended["lastTransitionTime"]))


async def restarted(scene: Scene, recorder: Recorder, manifest: Json) -> list[Json]:
    """All versions of the pod that have statuses of containers, up to the one in which all run again."""
    uid = (await scene.create(manifest))["metadata"]["uid"]

    def forms() -> list[Json]:
        return [form for _, form, _ in recorder.forms[uid] if form["status"].get("containerStatuses")]

    await until(lambda: any(map(runs_again, forms())), within=60)
    return forms()


def runs_again(form: Json) -> bool:
    is_over = condition(form, "AllContainersRestarting").get("status") != "True"
    return (
        is_over and is_second(form) and all("running" in each["state"] for each in form["status"]["containerStatuses"])
    )


def is_second(found: Json) -> bool:
    return int(status_of(found)["restartCount"]) > 0


def status_of(form: Json) -> Json:
    """The status of the container with the GPUs."""
    status: Json = next(each for each in form["status"]["containerStatuses"] if each["name"] == "main")
    return status


def before_restart(forms: Sequence[Json]) -> list[Json]:
    return [form for form in forms if not is_second(form)]


async def assert_lost(scene: Scene, form: Json, *, from_s: float, to_s: float) -> None:
    """Counter and ledger have this loss of as many GPUs as the pod is charged for, and no other, after its end too."""
    assert to_s - from_s >= 4
    name, uid = form["metadata"]["name"], form["metadata"]["uid"]
    charged = f"SELECT DISTINCT quantity FROM current_segments WHERE pod_uid = '{uid}'"
    [(quantity,)] = await scene.product.query_until(charged, bool)
    lost = quantity * round((to_s - from_s) * US_PER_SECOND)
    labels = {"tier": scene.tier(name), "cause": "container_restart"}

    def is_counted(samples: Samples) -> bool:
        counted = total(samples, LOST, **labels)
        return abs(counted - lost / GPU_SECOND) < 1e-6 and total(samples, RESTARTS, **labels) == 1

    await scene.product.until(is_counted)
    query = f"""
        SELECT victim_name, quantity, decided_us / 1000000.0, gpu_time, basis
        FROM disruptions JOIN lost_work USING (victim_uid) WHERE victim_uid LIKE '{uid}/%'
    """
    expected = [(name, quantity, to_s, str(lost), "start")]
    assert scene.product.query(query) == expected
    await scene.api.delete(f"/api/v1/namespaces/{scene.place}/pods/{name}")
    await scene.segments(form)  # all of them have ended
    assert scene.product.query(query) == expected
