"""The ledger against the truth, pod by pod."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from labs.campaign.churn import TEAMS
from tests.behaviour.product import Product, Rows
from tests.behaviour.recorder import (
    Form,
    Record,
    bindings,
    conditions,
    gpus,
    is_terminal,
    lifetime,
    requested,
    span,
    times,
    us,
)
from tests.cluster.manifests import Json

SECOND_US = 1_000_000
Interval = tuple[int, int]
Account = Counter[tuple[str, str, str, int]]
"""µs by tier, tenant, state and quantity."""
SEGMENTS = "SELECT pod_uid, tier, tenant, state, quantity, start_us, end_us FROM current_segments ORDER BY start_us"


@dataclass
class Verdict:
    """What differs (`deviations`, in words), and what the ledger itself says it cannot know."""

    pods: int
    deviations: list[str] = field(default_factory=list)
    gap_us: list[int] = field(default_factory=list)
    """Lengths of the blind intervals."""
    divided: int = 0
    """Pods whose states are divided otherwise than they were, as a form was lost in an interruption."""
    unseen: int = 0
    interruptions: int = 0

    def figures(self) -> dict[str, object]:
        """For a report."""
        return {
            "pods with GPUs": self.pods,
            "deviations": len(self.deviations),
            "pods that ended in a gap": len(self.gap_us),
            "gap seconds, all": round(sum(self.gap_us) / SECOND_US, 1),
            "gap seconds, longest": round(max(self.gap_us, default=0) / SECOND_US, 1),
            "pods with states divided otherwise": self.divided,
            "unseen pods": self.unseen,
            "interruptions": self.interruptions,
        }


def judge(record: Record, product: Product) -> Verdict:
    """Compare all that ever held GPUs, or that the ledger says did."""
    verdict = Verdict(len(record.allocated()), interruptions=len(product.interruptions()))
    accounts = by_pod(product.query(SEGMENTS))
    gap, known = product.gap(), product.accounted()
    interruptions = product.interruptions()
    for uid, forms in record.forms.items():
        name = f"{forms[0][1]['metadata']['name']} {uid}"
        if uid in gap:
            verdict.gap_us.append(gap[uid][1] - gap[uid][0])
            found = blindly(forms, accounts.get(uid, []), gap[uid])
        elif uid in known:
            rows = accounts.get(uid, [])
            verdict.divided += lost_a_form(forms, interruptions) and account(rows) != truth_of(forms)
            found = exactly(forms, rows, interruptions)
        elif any(lifetime(forms).values()):
            verdict.unseen += 1
            found = unseen(forms, interruptions)
        else:
            continue
        verdict.deviations += [f"{name}: {what}; {told(forms)}" for what in found]
    verdict.deviations += [f"{uid}: never existed" for uid in known - record.forms.keys()]
    verdict.deviations += preemptions(record, product)
    return verdict


def exactly(forms: list[Form], rows: Rows, interruptions: list[Interval]) -> Iterator[str]:
    """All that the API put a time on agrees to the µs; an end that can only be observed, to the second.

    Where a form was lost in an interruption, states may be divided otherwise, but add up.
    """
    start_us, latest_us = bound(forms, interruptions)
    begins_us = min(max(start_us, rows[0][5]), latest_us) if rows else start_us
    ours, truth = account(rows), truth_of(forms, begins_us=begins_us)
    if lost_a_form(forms, interruptions):
        ours, truth = regardless_of_state(ours), regardless_of_state(truth)
    more = {key: ours[key] - truth[key] for key in ours.keys() | truth.keys()}
    if any(abs(difference) > slack(forms) for difference in more.values()):
        yield f"the ledger has more by {more} µs: {rows}"
    elif rows and truth and rows[0][5] != begins_us:
        yield f"begins at {rows[0][5]}, truly in {(start_us, latest_us)}"


def bound(forms: list[Form], interruptions: list[Interval]) -> Interval:
    """The earliest and the latest moment at which the ledger may say that the pod was bound.

    A scheduler cut off by a restart of the server may not hear that it bound a pod, and write that it did not. If
    nobody watched while that could be read, all that is known is that it was by when the kubelet took the pod up.
    """
    start_us, _ = span(forms)
    readable = [any(us(mark["lastTransitionTime"]) == start_us for mark in bindings(pod)) for _, pod, _ in forms]
    if readable[-1] or not any(readable):
        return start_us, start_us
    _, _, overwritten_us = forms[len(readable) - readable[::-1].index(True)]
    taken_up = forms[-1][1]["status"].get("startTime")
    return start_us, us(taken_up) if taken_up and inside((start_us, overwritten_us), interruptions) else start_us


def lost_a_form(forms: list[Form], interruptions: list[Interval]) -> bool:
    """Whether the server may have forgotten when the pod's deletion was asked for, or the first of two starts.

    A kubelet cut off by a restart of the server may write a start twice, with different times.
    """
    asked = [requested(pod) for _, pod, _ in forms if "deletionTimestamp" in pod["metadata"]]
    starts = {us(t) for _, pod, _ in forms for t in times(pod, "startedAt")}
    moments = [min(each) for each in (asked, starts if len(starts) > 1 else ()) if each]
    return any(inside((moment, moment), interruptions) for moment in moments)


def blindly(forms: list[Form], rows: Rows, interval: Interval) -> Iterator[str]:
    """It began when the ledger says, was charged up to the blind interval, and ended inside."""
    start_us, end_us = span(forms)
    from_us, to_us = interval
    if not from_us - SECOND_US < end_us <= to_us + SECOND_US:
        yield f"ended at {end_us}, outside of [{from_us}, {to_us}]: {(end_us - from_us, end_us - to_us)} µs"
    if rows and (rows[0][5], rows[-1][6]) != (start_us, from_us):
        yield f"charged for [{rows[0][5]}, {rows[-1][6]}], not for [{start_us}, {from_us}]"


def unseen(forms: list[Form], interruptions: list[Interval]) -> Iterator[str]:
    """It lived wholly inside a recorded interruption."""
    start_us, end_us = span(forms)
    if not inside((start_us, end_us), interruptions):
        yield f"unknown to the ledger, but lived {(end_us - start_us) / SECOND_US} s from {start_us} on"


def inside(interval: Interval, others: list[Interval]) -> bool:
    """Whether one of the others holds it all, to the second."""
    return any(a - SECOND_US < interval[0] and interval[1] <= b + SECOND_US for a, b in others)


def preemptions(record: Record, product: Product) -> Iterator[str]:
    """Every victim is counted, unless its end was not seen, and nobody else is."""
    counted = product.victims()
    yield from (f"{uid}: counted as preempted" for uid in counted - record.victims())
    missed = noticed_victims(record, product) - counted
    yield from (f"{uid}: preempted, but not counted; {told(record.forms[uid])}" for uid in missed)


def noticed_victims(record: Record, product: Product) -> set[str]:
    """UIDs of the victims whose ends the product saw."""
    return (record.victims() & product.accounted()) - product.gap().keys()


def by_pod(rows: Rows) -> dict[str, Rows]:
    found: dict[str, Rows] = {}
    for row in rows:
        found.setdefault(row[0], []).append(row)
    return found


def account(rows: Rows) -> Account:
    """What the ledger charges a pod."""
    found = Account()
    for _, tier, tenant, state, quantity, start_us, end_us in rows:
        found[tier, tenant, state, quantity] += end_us - start_us
    return found


def truth_of(forms: list[Form], *, begins_us: int | None = None) -> Account:
    """What a pod had by its own forms, from `begins_us` on."""
    pod = forms[-1][1]
    lived = lifetime(forms, begins_us=begins_us)
    tier, tenant = pod["spec"].get("priorityClassName", "none"), TEAMS.get(pod["metadata"]["namespace"], "unassigned")
    quantity = gpus(pod) * 1_000_000
    return Account({(tier, tenant, state, quantity): lasted for state, lasted in lived.items() if lasted})


def told(forms: list[Form]) -> str:
    """The evidence: when which form was received, and what it said of the pod's binding and deletion."""
    return " ".join(f"{seen_us}:{kind}/{'/'.join(_said(pod))}" for kind, pod, seen_us in forms)


def _said(pod: Json) -> Iterator[str]:
    """The phase; since when it is scheduled, or why not; when its kubelet took it up; its runs; its deletion."""
    yield pod["status"]["phase"]
    for mark in conditions(pod, "PodScheduled"):
        yield f"scheduled={mark['status']}@{mark['lastTransitionTime']}{mark.get('reason', '')}"
    yield f"taken-up={pod['status'].get('startTime', '')}"
    yield from (f"{field}={time}" for field in ("startedAt", "finishedAt") for time in times(pod, field))
    yield f"deletion={pod['metadata'].get('deletionTimestamp', '')}"


def regardless_of_state(account: Account) -> Account:
    found = Account()
    for (tier, tenant, _, quantity), lasted_us in account.items():
        found[tier, tenant, "", quantity] += lasted_us
    return found


def slack(forms: list[Form]) -> int:
    """How exactly (µs) the end can be known. A kubelet that is cut off may write a completion twice, differently."""
    ends = [us(t) for _, pod, _ in forms if is_terminal(pod) for t in times(pod, "finishedAt")]
    return max(ends) - min(ends) if ends else SECOND_US
