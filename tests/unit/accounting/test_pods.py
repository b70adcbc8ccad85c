from dataclasses import replace

from gputally.accounting.totals.total import Total
from gputally.model.allocation import End
from gputally.model.kube.kinds import Kind
from gputally.model.rules import ResourceRule, Rules
from tests.core.manifests import NodeForm, us
from tests.core.one_pod import A100, BOUND, BY_LABEL, FINISHED, NODE, PENDING, RUNNING, cluster
from tests.core.replay import Replay


def test_a_pod_that_lived_seven_seconds_has_seven_gpu_seconds_whenever_it_is_seen() -> None:
    replay = cluster()
    replay.see(FINISHED, at=300)

    assert replay.gpu_seconds(999) == {("gold", "ml", "A100", "starting"): 2, ("gold", "ml", "A100", "running"): 5}


def test_a_pending_pod_has_nothing() -> None:
    replay = cluster()
    replay.see(PENDING, at=6)

    assert replay.gpu_seconds(100) == {}


def test_a_pod_that_was_deleted_before_it_was_bound_had_nothing() -> None:
    replay = cluster()
    replay.see(PENDING, at=6)
    replay.lose(replace(PENDING, deleted=20, grace=0), at=20)

    assert replay.gpu_seconds(100) == {}
    assert replay.fleet.pods.records == {}
    assert replay.fleet.pods.index.pending == set()


def test_a_pod_that_ends_before_it_runs_was_starting() -> None:
    replay = cluster()
    replay.see(BOUND, at=11)
    replay.see(replace(BOUND, deleted=20, version=3), at=20)
    replay.lose(replace(BOUND, deleted=20, version=4), at=25)

    assert replay.spans() == [("starting", 10, 20), ("terminating", 20, 25)]


def test_a_pod_refused_by_the_kubelet_had_nothing() -> None:
    replay = cluster()
    replay.see(BOUND, at=11)
    replay.see(replace(BOUND, phase="Failed", reason="UnexpectedAdmissionError", version=3), at=13)

    assert replay.gpu_seconds(100) == {}
    assert replay.capacity(100) == {"free": 800}


def test_a_pod_without_gpus_is_not_kept() -> None:
    replay = cluster()
    replay.see(replace(RUNNING, gpus=0), at=13)

    assert replay.fleet.pods.records == {}


def test_a_pod_deleted_by_force_has_its_gpus_up_to_its_deletion() -> None:
    replay = cluster()
    replay.see(RUNNING, at=13)
    replay.lose(RUNNING, at=40)

    assert replay.by_state(100) == {"starting": 2, "running": 28}
    assert replay.segments()[-1].end_us == us(40)
    assert replay.memory.revisions["uid-a"].end_by is End.DELETED


def test_a_pod_deleted_and_gone_before_anyone_saw_it_is_charged_by_its_last_form() -> None:
    replay = cluster()
    replay.lose(FINISHED, at=40)

    assert replay.by_state(100) == {"starting": 2, "running": 5}


def test_late_and_repeated_news_of_a_deleted_pod_is_ignored() -> None:
    replay = cluster()
    replay.see(RUNNING, at=13)
    replay.lose(FINISHED, at=20)
    replay.see(RUNNING, at=21)
    replay.lose(FINISHED, at=22)

    assert replay.by_state(100) == {"starting": 2, "running": 5}
    assert replay.fleet.pods.records == {}


def test_a_pod_of_the_same_name_is_another_pod() -> None:
    replay = cluster()
    replay.see(FINISHED, at=20)
    replay.lose(FINISHED, at=21)
    again = replace(RUNNING, uid="uid-again", created=22, scheduled=23, started=24)
    replay.see(again, at=25)

    assert replay.by_state(30) == {"starting": 3, "running": 11}
    replay.flush()
    assert {r.uid: r.name for r in replay.memory.revisions.values()} == {"uid-a": "a", "uid-again": "a"}


def test_a_pod_that_vanished_is_charged_to_where_it_was_last_known_and_what_is_blind_is_counted() -> None:
    replay = cluster()
    replay.see(RUNNING, at=13)
    replay.relist(Kind.PODS, at=90, since=60)

    assert replay.by_state(200) == {"starting": 2, "running": 48}
    assert replay.gpu_seconds(200, Total.UNOBSERVED) == {("gold", "ml", "A100"): 30}
    replay.flush()
    assert replay.memory.interruptions == {(Kind.PODS, us(60)): us(90)}


def test_a_pod_that_a_listing_still_has_goes_on() -> None:
    replay = cluster()
    replay.see(RUNNING, at=13)
    replay.relist(Kind.PODS, RUNNING, at=90, since=60)

    assert replay.by_state(100) == {"starting": 2, "running": 88}
    assert replay.gpu_seconds(100, Total.UNOBSERVED) == {}


def test_what_is_blind_is_taken_back_when_the_end_becomes_known() -> None:
    replay = cluster()
    replay.see(RUNNING, at=13)
    replay.see(replace(RUNNING, phase="Failed", version=4), at=90, since=60)
    assert replay.gpu_seconds(200, Total.UNOBSERVED) == {("gold", "ml", "A100"): 30}

    replay.see(replace(FINISHED, finished=70, version=5), at=91)

    assert replay.gpu_seconds(200, Total.UNOBSERVED) == {}
    assert replay.by_state(200) == {"starting": 2, "running": 58}


def test_units_weigh_as_the_node_shares() -> None:
    shared = NodeForm(labels=A100 | {"nvidia.com/gpu.replicas": "4"}, capacity={"nvidia.com/gpu.shared": 8})
    replay = cluster(node=shared)
    replay.see(replace(RUNNING, resource="nvidia.com/gpu.shared", gpus=2), at=13)

    assert replay.by_state(22) == {"starting": 1, "running": 5}
    assert replay.capacity(22) == {"allocated": 6, "free": 38}


def test_configured_resources_weigh_as_configured() -> None:
    rules = Rules(resources=(ResourceRule(pattern="acme.io/half", weight=500_000),))
    replay = cluster(rules, NodeForm(capacity={"acme.io/half": 4}))
    replay.see(replace(RUNNING, resource="acme.io/half", gpus=3), at=13)
    replay.see(replace(RUNNING, name="b"), at=13)

    assert replay.by_state(22) == {"starting": 3, "running": 15}


def test_a_new_layout_of_the_node_counts_from_its_observation() -> None:
    replay = cluster(node=replace(NODE, labels=A100 | {"nvidia.com/gpu.replicas": "1"}))
    replay.see(RUNNING, at=13)
    replay.see(replace(NODE, labels=A100 | {"nvidia.com/gpu.replicas": "2"}), at=20)

    assert replay.by_state(30) == {"starting": 2, "running": 8 + 5}


def test_a_pod_seen_before_its_node_gets_what_the_node_says_for_all_of_its_time() -> None:
    replay = Replay()
    replay.see(RUNNING, at=13)
    assert replay.gpu_seconds(20) == {("gold", "ml", "unknown", "starting"): 2, ("gold", "ml", "unknown", "running"): 8}
    assert replay.capacity(20) == {"allocated": 10, "overcommitted": 10}

    replay.see(NODE, at=20)

    assert replay.gpu_seconds(20) == {("gold", "ml", "A100", "starting"): 2, ("gold", "ml", "A100", "running"): 8}
    assert replay.capacity(20) == {"allocated": 10, "free": 150}


def test_a_pod_re_labelled_before_its_node_was_seen_keeps_both_tenants() -> None:
    replay = Replay(rules=BY_LABEL)
    replay.see(replace(RUNNING, labels={"team": "red"}), at=13)
    replay.see(replace(RUNNING, labels={"team": "blue"}, version=4), at=16)
    replay.see(NODE, at=20)

    assert {labels[:3] for labels in replay.gpu_seconds(20)} == {("gold", "red", "A100"), ("gold", "blue", "A100")}


def test_a_pod_on_a_node_without_labels_leaves_nothing_on_the_unknown_one() -> None:
    """Its terms do not change when the node is seen, its place does."""
    replay = Replay()
    replay.see(replace(RUNNING, resource="amd.com/gpu"), at=13)
    replay.see(NodeForm(capacity={"amd.com/gpu": 8}), at=20)

    assert replay.capacity(20) == {"allocated": 10, "free": 150}


def test_a_node_that_ceases_to_exist_ends_what_was_on_it() -> None:
    replay = cluster()
    replay.see(RUNNING, at=13)
    replay.lose(NODE, at=30)
    replay.lose(replace(RUNNING, phase="Failed"), at=70)  # the garbage collector comes later

    assert replay.by_state(100) == {"starting": 2, "running": 18}


def test_a_node_that_vanished_ends_what_was_on_it_where_it_was_last_known() -> None:
    replay = cluster()
    replay.see(RUNNING, at=13)
    replay.relist(Kind.NODES, at=90, since=60)

    assert replay.by_state(100) == {"starting": 2, "running": 48}
    assert replay.capacity(100) == {"allocated": 50, "free": 8 * 60 - 50}


def test_pods_belong_to_the_incarnation_that_existed_when_they_were_bound() -> None:
    replay = cluster()
    replay.see(RUNNING, at=13)
    replay.lose(NODE, at=30)
    replay.see(replace(NODE, uid="n1-again", created=40, labels={"nvidia.com/gpu.product": "H100"}), at=41)
    replay.see(replace(RUNNING, name="b", created=42, scheduled=45, started=46), at=46)

    assert {labels[2]: value for labels, value in replay.gpu_seconds(60).items() if labels[3] == "running"} == {
        "A100": 18,
        "H100": 14,
    }


def test_a_pod_seen_before_the_new_incarnation_of_its_node_belongs_to_that_one() -> None:
    """Pods and nodes are told by different watches: the pod may come first."""
    replay = cluster()
    replay.see(replace(RUNNING, created=42, scheduled=45, started=46), at=46)
    replay.lose(NODE, at=47, since=30)
    replay.see(replace(NODE, uid="n1-again", created=40), at=47)

    assert replay.by_state(60) == {"starting": 1, "running": 14}
    assert replay.capacity(60)["allocated"] == 15


def test_a_later_incarnation_ends_what_was_bound_to_one_nobody_saw() -> None:
    replay = Replay()
    replay.see(RUNNING, at=13)
    replay.see(replace(NODE, created=40), at=41)

    assert replay.by_state(60) == {"starting": 2, "running": 28}


def test_a_finished_pod_outlives_the_memory_of_its_node() -> None:
    replay = cluster()
    replay.see(FINISHED, at=20)
    replay.lose(NODE, at=30)
    replay.scrape(9000)
    replay.flush()
    replay.restart()
    replay.see(replace(FINISHED, version=9), at=9001)
    replay.lose(replace(FINISHED, version=9), at=9002)
    replay.scrape(9010)

    assert replay.gpu_seconds(9010) == {("gold", "ml", "A100", "starting"): 2, ("gold", "ml", "A100", "running"): 5}
    replay.scrape(9020)
    assert replay.memory.nodes == {}


def test_a_pod_refused_on_an_unknown_node_does_no_harm_when_the_node_comes() -> None:
    replay = Replay()
    replay.see(BOUND, at=11)
    replay.see(replace(BOUND, phase="Failed", reason="OutOfnvidia.com/gpu", version=3), at=12)
    replay.scrape(30)
    replay.see(NODE, at=31)

    assert replay.capacity(40) == {"free": 320}
