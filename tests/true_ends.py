"""When nodes and pods ended, for the naive reference: second by second, from plain documents alone."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from tests.told import Json, Told

REJECTIONS = ("OutOf", "UnexpectedAdmissionError", "NodeAffinity")
Interval = tuple[int, int]
"""Something happened at some time in it, ends included; both are the same when the time is known."""
MIDNIGHT = datetime.fromisoformat("2026-07-01T00:00:00+00:00")
RECOVERY = 60
"""How long after its node is ready again a kubelet may first tell of containers that were lost."""


def seconds(text: str) -> int:
    """Since midnight."""
    return int((datetime.fromisoformat(text) - MIDNIGHT).total_seconds())


def finish(form: Json) -> int | None:
    """When the last container stopped, if that is known of every one that ran."""
    status = form["status"]
    if _by_pod_gc(form) and starts_again(form):
        return None
    statuses = [*status.get("containerStatuses", ()), *status.get("initContainerStatuses", ())]
    times = [run.get("finishedAt") for each in statuses for run in _last(each)]
    return max((seconds(time) for time in times if time), default=None) if all(times) else None


def _last(status: Json) -> Iterable[Json]:
    """The last run of a container, which is to come for one that waits again; a start in 1970 that is over was none.

    A kubelet that has removed a container does not report when it started.
    """
    now = [run for name, run in status["state"].items() if name in ("running", "terminated")]
    starts = [run["startedAt"] for run in status["lastState"].values()]
    last: list[Json] = [{} for start in starts if start is None or seconds(start) > -86400]
    return now or last


def starts_again(form: Json) -> bool:
    """Whether the containers of a terminal pod would have run again."""
    return (form["spec"].get("restartPolicy"), form["status"]["phase"]) in (
        ("Always", "Failed"),
        ("Always", "Succeeded"),
        ("OnFailure", "Failed"),
    )


def held_until(told: Sequence[Told]) -> int:
    """When the deletion of a pod was asked for that would have gone on, and was not terminal before that."""
    ends = [t.manifest for t in told if t.manifest["status"]["phase"] in ("Succeeded", "Failed")]
    forms = [form for form in ends if finish(form) is not None]
    return min(0 if form["status"].get("reason") or not starts_again(form) else asked(form) for form in forms)


def asked(form: Json) -> int:
    """When its deletion was asked for; 0 if it was not."""
    meta = form["metadata"]
    return seconds(meta["deletionTimestamp"]) - meta["deletionGracePeriodSeconds"] if "deletionTimestamp" in meta else 0


def rejects(form: Json) -> bool:
    """Whether the kubelet refused the pod, which in this form has not run."""
    status = form["status"]
    is_refused = status["phase"] == "Failed" and status.get("reason", "").startswith(REJECTIONS)
    return is_refused and not any(starts(each) for each in status.get("containerStatuses", ()))


def starts(status: Json) -> list[int]:
    """When runs of a container began; 1970 is no time at all."""
    times = [run.get("startedAt") for state in (status["state"], status["lastState"]) for run in state.values()]
    return [seconds(time) for time in times if time and seconds(time) > -86400]


def own_end(told: Sequence[Told]) -> tuple[str, Interval] | None:
    """What the pod's forms tell of its end: finished, rejected, terminal or deleted, and when."""
    terminal = [t for t in told if t.manifest["status"]["phase"] in ("Succeeded", "Failed")]
    refused = [t for t in terminal if rejects(t.manifest)]
    finishes = [end for t in terminal if t not in refused and (end := finish(t.manifest)) is not None]
    if finishes:
        return "finished", (max(finishes), max(finishes))
    if refused:
        first = min(refused, key=lambda t: t.at)
        return "rejected", (first.since, first.at)
    seen = [(min(t.since, _collected(t)), _collected(t)) for t in terminal if t.event != "vanished"]
    if seen:
        return "terminal", min(seen, key=lambda interval: interval[1])
    gone = [_went(t) for t in told if t.event != "seen"]
    return ("deleted", min(gone, key=lambda interval: interval[1])) if gone else None


def lost_since(end: Interval, out: set[int]) -> int:
    """Since when something that seemed to end so may have ended: since the node was out of reach, if it was lately."""
    since = end[0]
    lately = [second for second in out if since - RECOVERY - 1 <= second < since]
    if lately:
        since = max(lately)
    while since - 1 in out:
        since -= 1
    return since


def unready(forms: Iterable[Told], *, created: int, until: int) -> set[int]:
    """The seconds in which a node was not ready, by its condition, or must have been before it turned ready."""
    found: set[int] = set()
    lost: int | None = None
    last: Json | None = None
    for told in forms:
        condition = told.manifest["status"]["conditions"][0]
        turned = seconds(condition["lastTransitionTime"])
        if condition["status"] == "True":
            if lost is not None:
                found |= set(range(lost, turned))
            elif last and turned > max(told.since, created, seconds(last["lastTransitionTime"])):
                found |= set(range(told.since, turned))
            lost = None
        elif lost is None:
            lost = turned
        last = condition
    return found if lost is None else found | set(range(lost, until))


def _collected(told: Told) -> int:
    """When PodGC made a pod terminal, else when it was told to be."""
    return min([told.at, *_by_pod_gc(told.manifest)])


def _by_pod_gc(form: Json) -> list[int]:
    conditions = form["status"]["conditions"]
    return [seconds(each["lastTransitionTime"]) for each in conditions if each.get("reason") == "DeletionByPodGC"]


def _went(told: Told) -> Interval:
    """When a pod can have gone: no sooner than its last deletion request, if that was without grace."""
    meta = told.manifest["metadata"]
    if told.event != "gone" or meta.get("deletionGracePeriodSeconds") != 0:
        return told.since, told.at
    last = min(seconds(meta["deletionTimestamp"]), told.at)
    prompt = min(told.at, last + 1)
    return (prompt, prompt) if told.since == told.at and told.at - last <= 2 else (last, told.at)
