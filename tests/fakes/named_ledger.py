"""A ledger with rows of every kind, all of whose names are one text that a tenant may choose."""

from pathlib import Path
from typing import Any

from msgspec.structs import replace

from gputally.ledger.open import open_reader
from gputally.ledger.records import Window
from gputally.ledger.sqlite.writer import SqliteLedger
from gputally.model.disruptions import Preemptor
from gputally.model.units import GPU_HOUR
from gputally.model.waits import Occupant, PendingSegmentRow
from tests.contract.records import BY, LOST_WORK, PREEMPTED, PRICE, WAIT, pod, segment, step, us
from tests.core.closings import close
from tests.fakes.tenants_ledger import CLUSTER
from tests.fakes.waits_ledger import QUOTA

DAY = 86_400


def named_ledger(folder: Path, name: str) -> Path:
    """Two pods, a preemption with lost work, waits, and a closed day; the first pod's end was not observed."""
    path = folder / "l.db"
    own: dict[str, Any] = {"tenant": name, "tier": name, "queue": name, "gpu_model": name, "pool": name}
    names: dict[str, Any] = {"namespace": name, "name": name, "node": name, "job_kind": name, "job": name}
    first = pod("a", segment(DAY, 2 * DAY, **own), end_us=us(2 * DAY), gap=None, **names)
    pods = first, pod("b", segment(DAY, DAY + 60, **own, price=replace(PRICE, key="euro", currency="EUR")), **names)
    victim: dict[str, Any] = {
        "victim_namespace": name,
        "victim_name": name,
        "victim_tier": name,
        "victim_tenant": name,
        "node": name,
    }
    times = {"decided_us": us(DAY), "noticed_us": us(DAY)}
    preemptor = Preemptor(uid="b", namespace=name, name=name, tier=name, tenant=name)
    lost = replace(PREEMPTED, **victim, job_kind=name, job=name, **times, by=replace(BY, preemptor=preemptor))
    wait = replace(WAIT, tier=name, tenant=name, occupant=Occupant(name, name), from_us=us(DAY), to_us=us(DAY + 60))
    lacking = replace(QUOTA, namespace=name, name=name, job_kind=name, job=name, tier=name, tenant=name)
    with SqliteLedger(path) as ledger, open_reader(str(path)) as reader:
        ledger.bind(CLUSTER)
        ledger.write(
            step(
                *pods,
                at=3 * DAY,
                victims={"a": lost},
                lost_work={"a": replace(LOST_WORK, gpu_time=GPU_HOUR)},
                waits={("b", wait.from_us): PendingSegmentRow(uid="b", namespace=name, name=name, wait=wait)},
                uncreated_waits={(name, lacking.uid, lacking.from_us): lacking},
            )
        )
        close(ledger, reader, Window(us(DAY), us(2 * DAY)), name="1970-01-02")
    return path
