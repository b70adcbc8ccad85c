import pytest

from gputally_sim.documents import Doc
from gputally_sim.instants import rfc3339
from tests.unit.sim.world import START_US, add, condition, exists, key, pod, read, recorded, seconds, small_world


def state(doc: Doc) -> Doc:
    (status,) = doc["status"]["containerStatuses"]
    found: Doc = status["state"]
    return found


def test_containers_run_when_start_after_is_over() -> None:
    world = small_world()
    add(world, pod("a", starts_after_us=seconds(30)))

    world.run_for(seconds(29))
    assert read(world, "a")["status"]["phase"] == "Pending"

    world.run_for(seconds(2))
    running = read(world, "a")
    assert running["status"]["phase"] == "Running"
    assert running["status"]["startTime"] == rfc3339(START_US + seconds(30))
    assert state(running) == {"running": {"startedAt": rfc3339(START_US + seconds(30))}}
    assert condition(running, "Ready")["status"] == "True"
    assert condition(running, "PodScheduled")["lastTransitionTime"] == rfc3339(START_US)


def test_a_pod_completes_after_run_for_and_keeps_when_it_started() -> None:
    world = small_world()
    add(world, pod("a", starts_after_us=seconds(30), lasts_us=seconds(7)))

    world.run_for(seconds(40))

    done = read(world, "a")
    assert done["status"]["phase"] == "Succeeded"
    assert state(done)["terminated"] == {
        "exitCode": 0,
        "reason": "Completed",
        "startedAt": rfc3339(START_US + seconds(30)),
        "finishedAt": rfc3339(START_US + seconds(37)),
    }
    assert condition(done, "Ready")["status"] == "False"


def test_an_init_container_runs_before_the_others() -> None:
    world = small_world()
    add(world, pod("a", initializes_us=seconds(20), starts_after_us=seconds(5)))

    world.run_for(seconds(1))
    [init] = read(world, "a")["status"]["initContainerStatuses"]
    assert read(world, "a")["status"]["phase"] == "Pending"
    assert read(world, "a")["status"]["startTime"] == rfc3339(START_US)
    assert init["state"] == {"running": {"startedAt": rfc3339(START_US)}}
    assert state(read(world, "a")) == {"waiting": {"reason": "PodInitializing"}}

    world.run_for(seconds(25))
    [init] = read(world, "a")["status"]["initContainerStatuses"]
    assert init["state"]["terminated"]["finishedAt"] == rfc3339(START_US + seconds(20))
    assert state(read(world, "a")) == {"running": {"startedAt": rfc3339(START_US + seconds(25))}}
    assert read(world, "a")["status"]["startTime"] == rfc3339(START_US)


def test_a_pod_told_to_fail_fails() -> None:
    world = small_world()
    add(world, pod("a", lasts_us=seconds(7), fails=True))

    world.run_for(seconds(40))

    assert read(world, "a")["status"]["phase"] == "Failed"
    assert state(read(world, "a"))["terminated"]["exitCode"] == 1


def test_containers_that_fail_run_again_after_a_while_and_their_last_run_is_reported() -> None:
    world = small_world()
    add(world, pod("a"))
    world.run_for(seconds(30))
    run = {
        "exitCode": 1,
        "reason": "Error",
        "startedAt": rfc3339(START_US),
        "finishedAt": rfc3339(START_US + seconds(30)),
    }

    world.nodes.crash(key("a"))
    [waiting] = read(world, "a")["status"]["containerStatuses"]
    world.run_for(seconds(11))
    [again] = read(world, "a")["status"]["containerStatuses"]

    assert (waiting["state"], waiting["lastState"]) == (
        {"waiting": {"reason": "CrashLoopBackOff"}},
        {"terminated": run},
    )
    assert again["state"] == {"running": {"startedAt": rfc3339(START_US + seconds(40))}}
    assert (again["restartCount"], again["lastState"]) == (1, {"terminated": run})
    assert condition(read(world, "a"), "Ready")["status"] == "True"


def test_a_pod_that_is_deleted_between_two_runs_reports_the_last_one() -> None:
    world = small_world()
    add(world, pod("a"))
    changes = recorded(world, "pods")
    world.run_for(seconds(30))
    world.nodes.crash(key("a"))
    world.registry.delete("pods", key("a"))

    world.run_for(seconds(40))

    [ended] = [each.now.doc for each in changes if each.now.doc["status"].get("phase") == "Failed"][:1]
    assert state(ended)["terminated"]["finishedAt"] == rfc3339(START_US + seconds(30))


def test_a_pod_without_run_for_runs_for_ever() -> None:
    world = small_world()
    add(world, pod("a"))

    world.run_for(seconds(10_000_000))

    assert read(world, "a")["status"]["phase"] == "Running"


@pytest.mark.parametrize(("stop_after", "stopped"), [(0, 0), (12, 12), (90, 30)])
def test_a_deleted_pod_ends_after_stop_after_but_at_most_its_grace(stop_after: int, stopped: int) -> None:
    world = small_world()
    add(world, pod("a", stops_after_us=seconds(stop_after), grace_seconds=30))
    world.run_for(seconds(60))
    changes = recorded(world, "pods")

    world.registry.delete("pods", key("a"))
    world.run_for(seconds(60))

    assert [change.verb for change in changes] == ["MODIFIED", "MODIFIED", "MODIFIED", "DELETED"]
    ended = changes[1].now.doc
    assert ended["status"]["phase"] == "Failed"
    assert state(ended)["terminated"]["finishedAt"] == rfc3339(START_US + seconds(60 + stopped))
    last = changes[3].now.doc
    assert last["status"] == ended["status"]
    assert last["metadata"]["deletionGracePeriodSeconds"] == 0


@pytest.mark.parametrize(
    ("told", "phase", "code", "reason"),
    [("0", "Succeeded", 0, "Completed"), ("3", "Failed", 3, "Error"), ("-1", "Failed", 143, "Error")],
)
def test_a_deleted_pod_exits_with_the_code_that_it_was_told(told: str, phase: str, code: int, reason: str) -> None:
    world = small_world()
    polite = pod("a", stops_after_us=seconds(5))
    polite["metadata"]["annotations"]["pod.gputally.io/exit-on-term"] = told
    add(world, polite)
    world.run_for(seconds(60))
    changes = recorded(world, "pods")

    world.registry.delete("pods", key("a"))
    world.run_for(seconds(10))

    ended = changes[-1].now.doc
    assert changes[-1].verb == "DELETED"
    assert ended["status"]["phase"] == phase
    assert (state(ended)["terminated"]["exitCode"], state(ended)["terminated"]["reason"]) == (code, reason)


def test_a_pod_that_never_ran_has_handled_no_signal() -> None:
    world = small_world()
    slow = pod("a", starts_after_us=seconds(30))
    slow["metadata"]["annotations"]["pod.gputally.io/exit-on-term"] = "0"
    add(world, slow)
    world.run_for(seconds(1))
    changes = recorded(world, "pods")

    world.registry.delete("pods", key("a"))
    world.run_for(seconds(10))

    assert changes[-1].now.doc["status"]["phase"] == "Failed"


def test_a_shortened_grace_stops_the_pod_sooner() -> None:
    world = small_world()
    add(world, pod("a", stops_after_us=seconds(300), grace_seconds=300))
    world.run_for(seconds(60))
    world.registry.delete("pods", key("a"))

    world.registry.delete("pods", key("a"), grace_seconds=5)
    world.run_for(seconds(6))

    assert not exists(world, "a")


def test_a_pod_deleted_before_it_started_never_starts() -> None:
    world = small_world()
    add(world, pod("a", starts_after_us=seconds(30)))
    world.run_for(seconds(1))
    changes = recorded(world, "pods")

    world.registry.delete("pods", key("a"))
    world.run_for(seconds(60))

    assert {change.now.doc["status"]["phase"] for change in changes} == {"Pending", "Failed"}
    assert "startedAt" not in state(changes[-1].now.doc)["terminated"]


def test_a_pod_that_takes_the_name_of_another_lives_its_own_life() -> None:
    world = small_world()
    add(world, pod("a", lasts_us=seconds(60)))
    world.run_for(seconds(30))
    world.registry.delete("pods", key("a"), grace_seconds=0)

    add(world, pod("a", lasts_us=seconds(60)))
    world.run_for(seconds(40))

    assert read(world, "a")["status"]["phase"] == "Running"


def test_a_duration_that_cannot_be_read_is_no_delay() -> None:
    world = small_world()
    odd = pod("a")
    odd["metadata"]["annotations"]["pod.gputally.io/start-after"] = "soon"
    add(world, odd)

    world.run_for(seconds(1))

    assert read(world, "a")["status"]["phase"] == "Running"


def test_a_pod_bound_by_its_creator_runs_too() -> None:
    world = small_world()
    bound = pod("a")
    bound["spec"]["nodeName"] = "n1"
    add(world, bound)

    world.run_for(seconds(1))

    assert read(world, "a")["status"]["phase"] == "Running"
    assert condition(read(world, "a"), "PodScheduled")["status"] == "True"


def test_what_ended_out_of_reach_is_told_later_with_its_own_time() -> None:
    world = small_world(nodes=1)
    add(world, pod("a", starts_after_us=seconds(5), lasts_us=seconds(60)))
    world.run_for(seconds(1))
    world.nodes.mark_unknown("n0")

    world.run_for(seconds(500))
    world.nodes.mark_ready("n0")
    world.run_for(0)

    assert state(read(world, "a"))["terminated"]["startedAt"] == rfc3339(START_US + seconds(5))
    assert state(read(world, "a"))["terminated"]["finishedAt"] == rfc3339(START_US + seconds(65))


def test_a_kubelet_out_of_reach_stops_nothing_before_it_is_back() -> None:
    world = small_world(nodes=1)
    add(world, pod("a"))
    world.run_for(seconds(1))
    world.nodes.mark_unknown("n0")
    world.registry.delete("pods", key("a"))
    changes = recorded(world, "pods")

    world.run_for(seconds(500))
    world.nodes.mark_ready("n0")

    assert state(changes[0].now.doc)["terminated"]["finishedAt"] == rfc3339(START_US + seconds(501))


@pytest.mark.parametrize("ahead", [-20, 20])
def test_a_kubelet_tells_times_by_the_clock_of_its_node(ahead: int) -> None:
    world = small_world(nodes=1)
    world.nodes.set_clock("n0", ahead_us=seconds(ahead))
    add(world, pod("a", starts_after_us=seconds(5), lasts_us=seconds(60)))

    world.run_for(seconds(70))

    done = read(world, "a")
    assert condition(done, "PodScheduled")["lastTransitionTime"] == rfc3339(START_US)
    assert state(done)["terminated"]["startedAt"] == rfc3339(START_US + seconds(5 + ahead))
    assert state(done)["terminated"]["finishedAt"] == rfc3339(START_US + seconds(65 + ahead))
    assert condition(done, "Ready")["lastTransitionTime"] == rfc3339(START_US + seconds(65 + ahead))
