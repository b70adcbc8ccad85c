from http import HTTPStatus

import pytest

from gputally_sim.api.refusals import StatusError
from gputally_sim.api.watch_pipe import WatchPipe
from gputally_sim.instants import DAY_US, HOUR_US
from gputally_sim.node.pods import is_terminal
from gputally_sim.scenarios.chaos import FORGED, NAMESPACE, REBORN, VANISHING, Chaos
from gputally_sim.scenarios.fleet import NodePool, gpu_node
from gputally_sim.simulation import Simulation
from tests.unit.sim.world import START_US, add, condition, node_of, pod, recorded, seconds, small_world


def hard(world: Simulation, *, every_us: int = HOUR_US) -> Chaos:
    """About to begin, so that a test may choose."""
    chaos = world.cause_chaos(every_us=every_us)
    world.run_for(0)
    return chaos


async def told(tap: WatchPipe, *lines: bytes) -> list[bytes]:
    """What becomes of lines."""
    written: list[bytes] = []

    async def write(data: bytes) -> None:
        written.append(data)

    await tap.carry(list(lines), write)
    return written


def opened(world: Simulation) -> tuple[WatchPipe, list[str]]:
    """An open watch, and a list that grows when it is dropped."""
    drops: list[str] = []
    tap = WatchPipe("pods", drop=lambda: drops.append("drop"), wake=lambda: None)
    world.faults.attach(tap)
    return tap, drops


def test_a_seed_fixes_every_deed() -> None:
    histories = []
    for seed in (3, 3, 4):
        world = Simulation(seed=seed, start_us=START_US)
        world.run_scenario("s1")
        chaos = world.cause_chaos(every_us=HOUR_US)
        world.run_for(2 * DAY_US)
        histories.append(chaos.actions)

    assert histories[0] == histories[1] != histories[2]
    assert 24 < len(histories[0]) < 96


def test_sooner_or_later_everything_happens() -> None:
    world = small_world(nodes=3)
    chaos = hard(world)

    world.run_for(30 * DAY_US)

    assert {action.fault for action in chaos.actions} == set(chaos.fault_names)


def test_containers_of_a_pod_crash_and_run_again() -> None:
    world = small_world(nodes=1, gpus=2)
    add(world, pod("never"), pod("a") | {"spec": pod("a")["spec"] | {"restartPolicy": "Always"}})
    chaos = hard(world)
    world.run_for(seconds(1))

    chaos.do("crash")
    world.run_for(seconds(11))

    assert chaos.actions[-1].target == "team/a"
    [again] = world.registry.read("pods", ("team", "a")).doc["status"]["containerStatuses"]
    assert again["restartCount"] == 1


def test_it_ends_nobody_elses_pod() -> None:
    world = small_world(nodes=3, gpus=4)
    add(world, *(pod(f"p{number}") for number in range(12)))
    hard(world)

    world.run_for(30 * DAY_US)

    ours = [doc for doc in world.store.docs("pods") if doc["metadata"]["namespace"] != NAMESPACE]
    assert len(ours) == 12
    assert not any(is_terminal(doc) for doc in ours)


def test_what_lasts_ends() -> None:
    world = small_world(nodes=1)
    chaos = hard(world)
    for fault in chaos.fault_names:
        chaos.do(fault)
    chaos.end()
    world.run_for(2 * HOUR_US)

    faults = world.faults
    assert (faults.streaming_lists, faults.frozen_bookmarks, faults.lose_events) == (True, False, False)
    assert faults._flowing.is_set()
    assert faults.next_refusal() is None
    node = world.registry.read("nodes", ("", "n0")).doc
    assert condition(node, "Ready")["status"] == "True"
    assert not node.get("spec", {}).get("unschedulable")
    assert world.nodes._kubelets.skews_us == {"n0": 0}
    assert [doc for doc in world.store.docs("pods") if doc["metadata"]["namespace"] == NAMESPACE] == []


@pytest.mark.parametrize("fault", ["drop", "refuse", "list by pages"])
def test_connections_break(fault: str) -> None:
    world = small_world()
    _, drops = opened(world)

    hard(world).do(fault)

    assert drops == ["drop"]


async def test_a_line_is_cut() -> None:
    world = small_world()
    tap, drops = opened(world)

    hard(world).do("cut")

    with pytest.raises(ConnectionResetError):
        await told(tap, b"0123456789\n")
    assert drops == ["drop"]


async def test_lines_trickle() -> None:
    world = small_world()
    tap, _ = opened(world)
    line = b"x" * 100 + b"\n"

    hard(world).do("trickle")
    pieces = await told(tap, line)

    assert b"".join(pieces) == line
    assert len(pieces) > 1


@pytest.mark.parametrize("fault", ["repeat", "garble", "mistype"])
async def test_more_is_told_than_happened(fault: str) -> None:
    world = small_world()
    tap, _ = opened(world)

    hard(world).do(fault)

    (sent,) = await told(tap, b"line\n")
    assert sent.count(b"\n") == 2


async def test_changes_are_told_out_of_order() -> None:
    world = small_world()
    tap, _ = opened(world)

    hard(world).do("reorder")

    sent = b"".join(await told(tap, *(b"%d\n" % number for number in range(5)))).split()
    assert sent != sorted(sent)
    assert sorted(sent) == [b"0", b"1", b"2", b"3", b"4"]


def test_a_refusal_is_one_that_passes() -> None:
    world = small_world()

    hard(world).do("refuse")

    code = world.faults.next_refusal()
    assert code == HTTPStatus.TOO_MANY_REQUESTS or (code and code >= HTTPStatus.INTERNAL_SERVER_ERROR)


def test_a_wrong_date_is_told_to_the_next_who_ask() -> None:
    world = small_world()
    _, drops = opened(world)

    hard(world).do("misdate")

    found = [world.faults.next_misdate() for _ in range(4)]
    assert 0 < abs(found[0]) <= DAY_US
    assert found[3] == 0
    assert drops == ["drop"]


def test_what_happens_during_a_long_silence_is_forgotten() -> None:
    world = small_world()
    _, drops = opened(world)
    before = world.store.version
    chaos = hard(world)

    chaos.do("expire")
    assert not world.faults._flowing.is_set()
    add(world, pod("unseen"))
    chaos.end()
    world.run_for(HOUR_US)

    assert drops == ["drop"]
    with pytest.raises(StatusError, match="too old resource version"):
        world.store.since("pods", before)


def test_the_clock_of_a_node_goes_wrong_by_half_a_minute_at_most() -> None:
    world = small_world(nodes=1)

    hard(world).do("skew")

    (skew_us,) = world.nodes._kubelets.skews_us.values()
    assert 0 < abs(skew_us) <= seconds(30)


def test_pods_of_one_name_live_for_a_second_each() -> None:
    world = small_world()
    chaos = hard(world)
    changes = recorded(world, "pods")

    chaos.do("reborn")
    world.run_for(seconds(6))

    ended = {c.now.doc["metadata"]["uid"]: c.now.doc for c in changes if is_terminal(c.now.doc)}
    lives = [doc["status"]["containerStatuses"][0]["state"]["terminated"] for doc in ended.values()]
    assert {doc["metadata"]["name"] for doc in ended.values()} == {REBORN}
    assert [(life["startedAt"][-3:-1], life["finishedAt"][-3:-1]) for life in lives] == [
        ("00", "01"),
        ("02", "03"),
        ("04", "05"),
    ]


def test_a_node_vanishes_with_its_pod_and_another_takes_its_name() -> None:
    world = small_world()
    chaos = hard(world)
    former = world.registry.read("nodes", ("", VANISHING)).doc["metadata"]["uid"]

    chaos.do("vanish")
    world.run_for(seconds(9))
    assert world.registry.read("pods", (NAMESPACE, VANISHING)).doc["status"]["phase"] == "Running"
    world.run_for(seconds(2))
    assert world.store.get("nodes", ("", VANISHING)) is None

    world.run_for(seconds(100))
    assert world.registry.read("nodes", ("", VANISHING)).doc["metadata"]["uid"] != former


def test_a_node_that_reboots_rejects_a_pod_that_it_had_accepted() -> None:
    world = small_world()
    chaos = hard(world)
    changes = recorded(world, "pods")

    chaos.do("reboot")
    world.run_for(seconds(301))

    statuses = [change.now.doc["status"] for change in changes]
    inits = [status["initContainerStatuses"][0]["state"] for status in statuses if "initContainerStatuses" in status]
    assert inits
    assert all("running" in state for state in inits)
    last = statuses[-1]
    assert (last["phase"], last["reason"]) == ("Failed", "UnexpectedAdmissionError")
    assert last["startTime"] == inits[0]["running"]["startedAt"]
    assert not {"containerStatuses", "initContainerStatuses"} & set(last)


def test_its_own_nodes_take_no_other_pods() -> None:
    world = small_world(nodes=0)
    hard(world)
    add(world, pod("a"))

    world.run_for(seconds(1))

    assert not node_of(world, "a")


def test_its_pods_name_owners_that_cannot_be_followed() -> None:
    world = small_world()
    chaos = hard(world)
    forged = set[str]()
    for _ in FORGED:
        chaos.do("reborn")
        for _ in range(10):
            world.run_for(seconds(1))
            owners = [stored.doc["metadata"]["ownerReferences"][0] for _, stored in world.store.snapshot("pods")]
            forged |= {f"{owner['kind']} {owner['name']}" for owner in owners}

    assert forged == {f"{owner['kind']} {owner['name']}" for owner in FORGED}


def test_half_of_a_nodes_gpus_fail_for_a_while_and_the_kubelet_offers_them_still() -> None:
    world = small_world(nodes=0)
    world.registry.create("nodes", gpu_node("n0", NodePool("pool", 1, 8), offered={"nvidia.com/gpu": 8}))
    chaos = hard(world)
    chaos.do("fail gpus")
    failed = world.registry.read("nodes", ("", "n0")).doc
    chaos.end()
    world.run_for(2 * HOUR_US)

    assert failed["metadata"]["labels"]["nvidia.com/gpu.count"] == "4"
    assert failed["status"]["capacity"]["nvidia.com/gpu"] == "8"
    assert chaos.actions[0].target == "n0"
    repaired = world.registry.read("nodes", ("", "n0")).doc
    assert repaired["metadata"]["labels"]["nvidia.com/gpu.count"] == "8"
