"""What nobody held of the GPUs of one node: each hour as last told, booked once."""

from collections.abc import Iterable

from gputally.accounting.usage.held_usage import PendingRows, ReportContext
from gputally.accounting.usage.usage_posting import UsagePosting, unheld_since
from gputally.model.measured.usage_record import GpuKey, UnheldHour
from gputally.model.measured.usage_report import Fault, GpuHour, GpuReport


class UnheldUsage:
    """Hours by GPU, of this life of the node's agent."""

    def __init__(self, posting: UsagePosting, noted: PendingRows) -> None:
        self._rows: dict[GpuKey, UnheldHour] = {}
        self._posting = posting
        self._noted = noted

    def restore(self, row: UnheldHour) -> None:
        """Take up an hour as an earlier process booked it."""
        self._rows[row.key] = row

    def told(self, gpus: Iterable[GpuReport], telling: ReportContext, labels: tuple[str, str]) -> None:
        """Take in all that the agent tells of GPUs; `labels` are the exported (gpu_model, pool) of their node."""
        present = set[GpuKey]()
        unattributed = energy = 0
        for gpu in gpus:
            told_us = gpu.watermark_us - telling.ahead_us
            for hour in gpu.hours:
                key = GpuKey(telling.epoch, gpu.uuid, hour.start_us)
                present.add(key)
                more = self._hour_told(key, hour, telling, told_us=told_us)
                unattributed, energy = unattributed + more[0], energy + more[1]
        self._posting.unheld(unattributed, energy, labels, at_us=telling.at_us)
        self._close(self._rows.keys() - present)

    def close(self) -> None:
        """The agent will not tell of any of it any more."""
        self._close(set(self._rows))

    def _close(self, keys: Iterable[GpuKey]) -> None:
        for key in keys:
            row = self._rows.pop(key)
            self._noted.unheld[key] = UnheldHour(key=key, node=row.node, hour=row.hour, open=False)

    def _hour_told(self, key: GpuKey, hour: GpuHour, telling: ReportContext, *, told_us: int) -> tuple[int, ...]:
        """What it adds since the opening of the books: unattributed, energy."""
        row = self._rows.get(key)
        last = row.hour if row else None
        fell = last and (hour.unattributed < last.unattributed or hour.energy < last.energy)
        if fault := Fault.FELL if fell else telling.room.unheld(key.gpu, last, hour):
            self._noted.left_out(fault, telling.node)
            return 0, 0
        if last == hour:
            return 0, 0
        self._rows[key] = self._noted.unheld[key] = UnheldHour(key=key, node=telling.node, hour=hour)
        return self._posting.since_opening(unheld_since(last, hour, told_us=told_us, ahead_us=telling.ahead_us))
