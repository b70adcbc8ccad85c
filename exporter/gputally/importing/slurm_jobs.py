"""Jobs of Slurm, from `sacct --allocations --parsable2 --format ...`.

Source: https://slurm.schedmd.com/sacct.html (job states, AllocTRES).
"""

import re
from typing import Final

from gputally.importing.imported_job import ImportedJob
from gputally.importing.row_cells import CellError, Cells
from gputally.model.allocation import Outcome
from gputally.model.units import GPU

COLUMNS: Final = ("JobIDRaw", "Account", "QOS", "State", "Submit", "Start", "End", "AllocTRES")
"""Required columns. `Partition` and `NodeList` are read too."""
FORMAT: Final = "JobIDRaw,Account,QOS,Partition,State,Submit,Start,End,AllocTRES,NodeList"
_GPUS: Final = re.compile(r"gres/gpu(?::(?P<model>[^=,]+))?=(?P<count>\d{1,6})")
_NOT_STARTED: Final = ("PENDING", "REQUEUED", "REVOKED")
_OUTCOMES: Final = {
    "COMPLETED": Outcome.SUCCEEDED,
    "FAILED": Outcome.FAILED,
    "OUT_OF_MEMORY": Outcome.FAILED,
    "TIMEOUT": Outcome.FAILED,
    "DEADLINE": Outcome.FAILED,
    "CANCELLED": Outcome.DELETED,
    "PREEMPTED": Outcome.PREEMPTED,
    "NODE_FAIL": Outcome.LOST,
    "BOOT_FAIL": Outcome.LOST,
    **dict.fromkeys(("RUNNING", "COMPLETING", "SUSPENDED", "RESIZING", "STOPPED", "SIGNALING"), Outcome.RUNNING),
    **dict.fromkeys(_NOT_STARTED, Outcome.RUNNING),
}


def slurm_job(cells: Cells) -> ImportedJob | None:
    """The job of a row; None for a step, without GPUs, or if it never started. Raises: CellError."""
    job_id = cells.name("JobIDRaw")
    state = (cells.name("State").split() or [""])[0].rstrip("+")  # CANCELLED by 1000
    if state not in _OUTCOMES:
        raise CellError("State", f"unknown '{state}'; use the names of sacct, such as COMPLETED")
    model, quantity = _gpus(cells.text("AllocTRES"))
    start_us, end_us, outcome = cells.optional_time_us("Start"), cells.optional_time_us("End"), _OUTCOMES[state]
    submit_us = cells.time_us("Submit")
    if "." in job_id or not quantity or start_us is None:
        return None
    cells.ordered(Start=start_us, End=end_us)
    if (end_us is None) is not (outcome is Outcome.RUNNING):
        raise CellError("End", f"'{cells.text('End')}' does not fit the state {state}")
    return ImportedJob(
        id=job_id,
        tenant=cells.text("Account"),
        priority_class=cells.text("QOS"),
        queue=cells.text("Partition"),
        gpu_model=model,
        node=cells.text("NodeList"),
        quantity=quantity,
        submit_us=min(submit_us, start_us),
        start_us=start_us,
        end_us=end_us,
        outcome=outcome,
        reason="" if state in ("COMPLETED", "FAILED") else state,
    )


def _gpus(tres: str) -> tuple[str, int]:
    """The GPU model and µGPU. Slurm lists the GPUs of all types first, then those of each type."""
    found = [(match["model"] or "", int(match["count"])) for match in _GPUS.finditer(tres)]
    models = [model for model, _ in found if model]
    total = next((count for model, count in found if not model), sum(count for _, count in found))
    return models[0] if len(models) == 1 else "", total * GPU
