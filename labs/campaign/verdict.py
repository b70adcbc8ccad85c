"""Compares the ledger to the truth, pod by pod."""

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
    """The differences (`deviations`, as text), and what the ledger itself reports as unknown."""

    pods: int
    deviations: list[str] = field(default_factory=list)
    gap_us: list[int] = field(default_factory=list)
    """Lengths of the observation gaps."""
    divided: int = 0
    """Pods with time assigned to different states, because an update was lost in an interruption."""
    unseen: int = 0
    interruptions: int = 0

    def figures(self) -> dict[str, object]:
        """The figures of the report."""
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
    """Compare all pods that had GPUs according to the truth or to the ledger."""
    verdict = Verdict(len(record.allocated()), interruptions=len(product.interruptions()))
    accounts = by_pod(product.query(SEGMENTS))
    gap, known = product.gap(), product.accounted()
    interruptions = product.interruptions()
    for uid, forms in record.forms.items():
        name = f"{forms[0][1]['metadata']['name']} {uid}"
        if uid in gap:
            verdict.gap_us.append(gap[uid][1] - gap[uid][0])
            found = gap_deviations(forms, accounts.get(uid, []), gap[uid])
        elif uid in known:
            rows = accounts.get(uid, [])
            verdict.divided += lost_an_update(forms, interruptions) and account(rows) != truth_of(forms)
            found = exact_deviations(forms, rows, interruptions)
        elif any(lifetime(forms).values()):
            verdict.unseen += 1
            found = unseen(forms, interruptions)
        else:
            continue
        verdict.deviations += [f"{name}: {what}; {evidence(forms)}" for what in found]
    verdict.deviations += [f"{uid}: never existed" for uid in known - record.forms.keys()]
    verdict.deviations += preemptions(record, product)
    return verdict


def exact_deviations(forms: list[Form], rows: Rows, interruptions: list[Interval]) -> Iterator[str]:
    """Times from the API must be exact to the µs; an end that can only be observed, to the second.

    If an update was lost in an interruption, the split between states may differ, but not the sum.
    """
    start_us, latest_us = bound(forms, interruptions)
    begins_us = min(max(start_us, rows[0][5]), latest_us) if rows else start_us
    charged, truth = account(rows), truth_of(forms, begins_us=begins_us)
    if lost_an_update(forms, interruptions):
        charged, truth = regardless_of_state(charged), regardless_of_state(truth)
    more = {key: charged[key] - truth[key] for key in charged.keys() | truth.keys()}
    if any(abs(difference) > slack(forms) for difference in more.values()):
        yield f"the ledger has more by {more} µs: {rows}"
    elif rows and truth and rows[0][5] != begins_us:
        yield f"begins at {rows[0][5]}, truly in {(start_us, latest_us)}"


def bound(forms: list[Form], interruptions: list[Interval]) -> Interval:
    """The earliest and the latest binding time that the ledger may record.

    A scheduler disconnected by a server restart may miss that its binding succeeded, and then write PodScheduled=False.
    If the binding was readable only during an interruption, the kubelet's startTime is the only known bound.
    """
    start_us, _ = span(forms)
    readable = [any(us(mark["lastTransitionTime"]) == start_us for mark in bindings(pod)) for _, pod, _ in forms]
    if readable[-1] or not any(readable):
        return start_us, start_us
    _, _, overwritten_us = forms[len(readable) - readable[::-1].index(True)]
    accepted = forms[-1][1]["status"].get("startTime")
    return start_us, us(accepted) if accepted and inside((start_us, overwritten_us), interruptions) else start_us


def lost_an_update(forms: list[Form], interruptions: list[Interval]) -> bool:
    """Whether the time of the deletion request, or the first of two start times, may be lost.

    A kubelet disconnected by a server restart may write a start twice, with different times.
    """
    asked = [requested(pod) for _, pod, _ in forms if "deletionTimestamp" in pod["metadata"]]
    starts = {us(t) for _, pod, _ in forms for t in times(pod, "startedAt")}
    moments = [min(each) for each in (asked, starts if len(starts) > 1 else ()) if each]
    return any(inside((moment, moment), interruptions) for moment in moments)


def gap_deviations(forms: list[Form], rows: Rows, interval: Interval) -> Iterator[str]:
    """The pod must be charged from its start up to the observation gap, and must end inside the gap."""
    start_us, end_us = span(forms)
    from_us, to_us = interval
    if not from_us - SECOND_US < end_us <= to_us + SECOND_US:
        yield f"ended at {end_us}, outside of [{from_us}, {to_us}]: {(end_us - from_us, end_us - to_us)} µs"
    if rows and (rows[0][5], rows[-1][6]) != (start_us, from_us):
        yield f"charged for [{rows[0][5]}, {rows[-1][6]}], not for [{start_us}, {from_us}]"


def unseen(forms: list[Form], interruptions: list[Interval]) -> Iterator[str]:
    """The pod must have existed only inside a recorded interruption."""
    start_us, end_us = span(forms)
    if not inside((start_us, end_us), interruptions):
        yield f"unknown to the ledger, but lived {(end_us - start_us) / SECOND_US} s from {start_us} on"


def inside(interval: Interval, others: list[Interval]) -> bool:
    """Whether one of the others contains the interval, to the second."""
    return any(a - SECOND_US < interval[0] and interval[1] <= b + SECOND_US for a, b in others)


def preemptions(record: Record, product: Product) -> Iterator[str]:
    """Every victim must be counted, unless its end was not observed, and no other pod."""
    counted = product.victims()
    yield from (f"{uid}: counted as preempted" for uid in counted - record.victims())
    missed = noticed_victims(record, product) - counted
    yield from (f"{uid}: preempted, but not counted; {evidence(record.forms[uid])}" for uid in missed)


def noticed_victims(record: Record, product: Product) -> set[str]:
    """UIDs of the victims whose ends the product observed."""
    return (record.victims() & product.accounted()) - product.gap().keys()


def by_pod(rows: Rows) -> dict[str, Rows]:
    found: dict[str, Rows] = {}
    for row in rows:
        found.setdefault(row[0], []).append(row)
    return found


def account(rows: Rows) -> Account:
    """The time that the ledger charges a pod."""
    found = Account()
    for _, tier, tenant, state, quantity, start_us, end_us in rows:
        found[tier, tenant, state, quantity] += end_us - start_us
    return found


def truth_of(forms: list[Form], *, begins_us: int | None = None) -> Account:
    """The true time of a pod by its recorded updates, from `begins_us` on."""
    pod = forms[-1][1]
    lived = lifetime(forms, begins_us=begins_us)
    tier, tenant = pod["spec"].get("priorityClassName", "none"), TEAMS.get(pod["metadata"]["namespace"], "unassigned")
    quantity = gpus(pod) * 1_000_000
    return Account({(tier, tenant, state, quantity): lasted for state, lasted in lived.items() if lasted})


def evidence(forms: list[Form]) -> str:
    """The recorded updates with receive times, and their binding and deletion fields."""
    return " ".join(f"{seen_us}:{kind}/{'/'.join(_summary(pod))}" for kind, pod, seen_us in forms)


def _summary(pod: Json) -> Iterator[str]:
    """Phase, PodScheduled condition, start time of the kubelet, container times and deletion time."""
    yield pod["status"]["phase"]
    for mark in conditions(pod, "PodScheduled"):
        yield f"scheduled={mark['status']}@{mark['lastTransitionTime']}{mark.get('reason', '')}"
    yield f"start-time={pod['status'].get('startTime', '')}"
    yield from (f"{field}={time}" for field in ("startedAt", "finishedAt") for time in times(pod, field))
    yield f"deletion={pod['metadata'].get('deletionTimestamp', '')}"


def regardless_of_state(account: Account) -> Account:
    found = Account()
    for (tier, tenant, _, quantity), lasted_us in account.items():
        found[tier, tenant, "", quantity] += lasted_us
    return found


def slack(forms: list[Form]) -> int:
    """Tolerance of the end in µs. A disconnected kubelet may write a completion twice, with different times."""
    ends = [us(t) for _, pod, _ in forms if is_terminal(pod) for t in times(pod, "finishedAt")]
    return max(ends) - min(ends) if ends else SECOND_US
