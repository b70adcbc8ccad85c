"""Jobs of Slurm, from `sacct --allocations --duplicates --parsable2 --format ...`.

AllocTRES names their GPUs, such as `cpu=8,gres/gpu:a100=2,gres/gpu=2,node=1`.

Source: https://slurm.schedmd.com/sacct.html (job states); SchedMD/slurm src/sacct/sacct.c (columns) and
src/plugins/accounting_storage/mysql/as_mysql_job.c, which adds a row for each run, and for each size of a resized job;
src/common/slurmdb_defs.c, slurmdb_make_tres_string_from_simple: amounts of GRES are whole numbers without a suffix;
https://slurm.schedmd.com/gres.html (MPS, sharding, MIG).
"""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from msgspec import Struct

from gputally.importing.imported_job import ImportedJob
from gputally.importing.row_cells import MOST_GPUS, CellError, Cells, shown
from gputally.model.allocation import Outcome
from gputally.model.rules import MigBasis
from gputally.model.units import GPU
from gputally.shares import gfd
from gputally.shares.mig import slice_of

COLUMN: Final = "AllocTRES"
FLAGS: Final = {"shard": "--shards-per-gpu", "mps": "--mps-per-gpu"}
"""How many of these shares a GPU has is a flag."""
_GRES: Final = "gres/"
_GPU: Final = "gpu"
_USAGE: Final = ("gpumem", "gpuutil")
"""What a job used of its GPUs."""
_COUNT: Final = re.compile(r"\d{1,18}", re.ASCII)
_SLICE: Final = re.compile(r"(?:(?P<model>.*?)[_-])?(?P<profile>(?:\d{1,2}c\.)?\d{1,2}g\.\d{1,4}gb)(?:\W.*)?", re.ASCII)
"""A GPU type that is a MIG slice, such as a100_1g.10gb."""
_NO_SLICE: Final = re.compile(r"\b0+[cg]")
_MEMORY_GB: Final = re.compile(r"(\d{1,4})gb", re.ASCII)
_MIB_PER_GB: Final = 1024
COLUMNS: Final = ("JobIDRaw", "Account", "QOS", "State", "Submit", "Start", "End", COLUMN)
"""Required columns."""
OPTIONAL: Final = ("Partition", "NodeList", "Restarts")
FREE_TEXTS: Final = (
    *("JobName", "Comment", "Constraints", "Container", "Extra", "Licenses", "QOSREQ", "StdErr", "StdIn", "StdOut"),
    *("SubmitLine", "WCKey", "WorkDir"),
)
"""Columns whose texts users choose: they may look like other cells or rows."""
_JOB_ID: Final = re.compile(r"\d{1,20}(?P<step>\..*)?", re.ASCII)
_MOST_RESTARTS: Final = 1_000_000
_OTHERS: Final = 10
"""Names of resources that are not GPUs which are kept."""
_NOT_STARTED: Final = ("PENDING", "REVOKED")
_OUTCOMES: Final = {
    "COMPLETED": Outcome.SUCCEEDED,
    "FAILED": Outcome.FAILED,
    "OUT_OF_MEMORY": Outcome.FAILED,
    "TIMEOUT": Outcome.FAILED,
    "DEADLINE": Outcome.FAILED,
    "CANCELLED": Outcome.DELETED,
    "REQUEUED": Outcome.DELETED,
    "PREEMPTED": Outcome.PREEMPTED,
    "NODE_FAIL": Outcome.LOST,
    "BOOT_FAIL": Outcome.LOST,
    **dict.fromkeys(("RUNNING", "COMPLETING", "SUSPENDED", "RESIZING", "STOPPED", "SIGNALING"), Outcome.RUNNING),
    **dict.fromkeys(_NOT_STARTED, Outcome.RUNNING),
}


class SlurmShares(Struct, frozen=True, kw_only=True):
    """What a part of a GPU weighs: MIG slices by `mig_basis`, shards and MPS by how many a GPU has, if known."""

    mig_basis: MigBasis = MigBasis.COMPUTE
    shards_per_gpu: int | None = None
    mps_per_gpu: int | None = None

    def units(self, name: str) -> int | None:
        """How many of the shares `name` are one GPU; None if that is not known."""
        return self.shards_per_gpu if name == "shard" else self.mps_per_gpu


class SlurmGpus(NamedTuple):
    """µGPU of a job, its model if it has one that is known, and the names of generic resources of other kinds."""

    quantity: int
    model: str
    others: frozenset[str]


@lru_cache(maxsize=4096)
def gpus_of(tres: str, shares: SlurmShares) -> SlurmGpus:
    """The GPUs of a job, each counted once. Raises: CellError for an amount that is not certain."""
    amounts = dict[str, dict[str, int]]()
    others = set[str]()
    for name, kind, amount in _resources(tres):
        if name not in (_GPU, *FLAGS):
            others |= {shown(name)} - set(_USAGE)
        elif kind in amounts.setdefault(name, {}):
            raise CellError(COLUMN, f"has {_GRES}{shown(name)}{kind and ':'}{shown(kind)} twice")
        else:
            amounts[name][kind] = _count(name, amount)
    found = {name: counts for name, counts in amounts.items() if any(counts.values())}
    if len(found) > 1:
        text = " and ".join(_GRES + name for name in sorted(found))
        raise CellError(COLUMN, f"has {text}; which of them are shares of the others is not known")
    quantity, model = next((_weighed(name, counts, shares) for name, counts in found.items()), (0, ""))
    return SlurmGpus(quantity, model, frozenset(others))


def _resources(tres: str) -> Iterator[tuple[str, str, str]]:
    """Name, type and amount of each generic resource."""
    for each in tres.split(","):
        if each.startswith(_GRES):
            key, _, amount = each.removeprefix(_GRES).partition("=")
            name, _, kind = key.partition(":")
            yield name, kind, amount


def _count(name: str, amount: str) -> int:
    if not _COUNT.fullmatch(amount):
        raise CellError(COLUMN, f"'{shown(amount)}' of {_GRES}{name} is not a whole number")
    return int(amount)


def _weighed(name: str, counts: Mapping[str, int], shares: SlurmShares) -> tuple[int, str]:
    """µGPU and model. The amount without a type is that of all types, some of which may have an amount of their own."""
    by_type = {kind: count for kind, count in counts.items() if kind and count}
    typed = sum(by_type.values())
    rest = counts.get("", typed) - typed
    if rest < 0:
        raise CellError(COLUMN, f"{_GRES}{name}={counts['']} is less than the amounts of its types, {typed}")
    models = {_slice(kind)[0] for kind in by_type} | ({""} if rest else set())
    model = models.pop() if len(models) == 1 else ""
    if name == _GPU:
        _expect_plausible(name, typed + rest, most=MOST_GPUS)
        quantity = rest * GPU + sum(count * _unit(kind, shares.mig_basis) for kind, count in by_type.items())
    else:
        quantity = _shared(name, typed + rest, shares.units(name))
    return quantity, model


def _shared(name: str, count: int, per_gpu: int | None) -> int:
    """µGPU of so many shares; a share is at least one."""
    if per_gpu is None:
        raise CellError(COLUMN, f"{_GRES}{name}={count} is part of a GPU; say with {FLAGS[name]} how many a GPU has")
    _expect_plausible(name, count, most=MOST_GPUS * per_gpu)
    return max(1, count * GPU // per_gpu)


def _expect_plausible(name: str, count: int, *, most: int) -> None:
    if count > most:
        raise CellError(COLUMN, f"{_GRES}{name}={count} is more than one job may have ({most})")


def _unit(kind: str, basis: MigBasis) -> int:
    """µGPU of one GPU or slice of this type."""
    model, profile = _slice(kind)
    if not profile:
        return GPU
    if _NO_SLICE.search(profile):
        raise CellError(COLUMN, f"{shown(kind)} is not a MIG profile")
    node = {gfd.PRODUCT: model.upper().replace("_", "-")}
    if memory := _MEMORY_GB.search(model.lower()):
        node[gfd.MEMORY] = str(int(memory[1]) * _MIB_PER_GB)
    return slice_of(profile, node, basis)


def _slice(kind: str) -> tuple[str, str]:
    """GPU model and MIG profile of a type; a whole GPU has no profile."""
    match = _SLICE.fullmatch(kind)
    return (match["model"] or "", match["profile"]) if match else (kind, "")


class SlurmJobs:
    """Reads rows, and remembers what they say of others."""

    def __init__(self, shares: SlurmShares) -> None:
        self._shares = shares
        self._others = set[str]()
        self._runs, self._earlier_runs = set[int](), set[int]()

    def job(self, cells: Cells) -> ImportedJob | None:
        """The run of a row; None for a step, without GPUs, or if it never started. Raises: CellError."""
        job_id = cells.name("JobIDRaw")
        if not (number := _JOB_ID.fullmatch(job_id)):
            raise CellError("JobIDRaw", f"'{shown(job_id)}' is not the number of a job")
        if number["step"] or not (gpus := self._gpus(job_id, cells)).quantity:
            return None
        state, times = _state(cells), cells.times("Submit", "Start", "End", submit_is_reset=True)
        if times.start_us is None:
            return None
        if (outcome := _outcome(state, cells, has_ended=times.end_us is not None)) is None:
            return None
        return ImportedJob(
            id=job_id,
            tenant=cells.text("Account"),
            priority_class=cells.text("QOS"),
            queue=cells.text("Partition"),
            gpu_model=gpus.model,
            node=cells.text("NodeList"),
            quantity=gpus.quantity,
            submit_us=min(times.submit_us, times.start_us),
            start_us=times.start_us,
            end_us=times.end_us,
            outcome=outcome,
            reason="" if state in ("COMPLETED", "FAILED") else state,
            run_us=times.run_us,
        )

    def notes(self) -> list[str]:
        """What the rows say of GPU time that is not in the result."""
        found = []
        if self._others:
            found.append(f"not counted as GPUs: {', '.join('gres/' + name for name in sorted(self._others))}")
        if missing := len(self._earlier_runs - self._runs):
            remedy = "export with sacct --duplicates, and from before they began"
            found.append(f"{missing:,} earlier runs of its jobs, which Restarts counts, are not in the file; {remedy}")
        return found

    def _gpus(self, job_id: str, cells: Cells) -> SlurmGpus:
        """The GPUs of a run, which is in the file also if the row is rejected."""
        tres = cells.text(COLUMN)
        try:
            gpus = gpus_of(tres, self._shares)
        except CellError:
            self._note_run(job_id, cells)
            raise
        if gpus.quantity:
            self._note_run(job_id, cells)
        if len(self._others) < _OTHERS:
            self._others |= gpus.others
        return gpus

    def _note_run(self, job_id: str, cells: Cells) -> None:
        if not cells.text("Restarts"):
            return
        restarts = cells.number("Restarts", most=_MOST_RESTARTS)
        self._runs.add(hash((job_id, restarts)))
        if restarts:
            self._earlier_runs.add(hash((job_id, restarts - 1)))


def _state(cells: Cells) -> str:
    state = cells.name("State").split()[0].rstrip("+")  # CANCELLED by 1000
    if state not in _OUTCOMES:
        raise CellError("State", f"unknown '{shown(state)}'; use the names of sacct, such as COMPLETED")
    return state


def _outcome(state: str, cells: Cells, *, has_ended: bool) -> Outcome | None:
    """The outcome of a run; None if it never started. Raises: CellError."""
    if state in _NOT_STARTED and not has_ended:
        return None
    if state == "RESIZING" and has_ended:
        return Outcome.UNKNOWN  # the job goes on in another row
    outcome = _OUTCOMES[state]
    if has_ended is (outcome is Outcome.RUNNING):
        raise CellError("End", f"'{cells.text('End')}' does not fit the state {state}")
    return outcome
