"""Usage of the unallocated GPUs of one node: each hour as last reported, posted once."""

from collections.abc import Iterable

from gputally.accounting.usage.assignment_usage import PendingRows, ReportContext
from gputally.accounting.usage.usage_posting import UsagePosting, unallocated_since
from gputally.model.usage import Fault, GpuHour, GpuKey, GpuReport, UnallocatedHour


class UnallocatedUsage:
    """Hours by GPU, of the present run of the node's agent."""

    def __init__(self, posting: UsagePosting, pending: PendingRows) -> None:
        self._rows: dict[GpuKey, UnallocatedHour] = {}
        self._posting = posting
        self._pending = pending

    def restore(self, row: UnallocatedHour) -> None:
        """Restore an hour as an earlier process posted it."""
        self._rows[row.key] = row

    def reported(self, gpus: Iterable[GpuReport], context: ReportContext, labels: tuple[str, str]) -> None:
        """Process all GPUs of a report; `labels` are the exported (gpu_model, pool) of their node."""
        present = set[GpuKey]()
        unattributed = energy = 0
        for gpu in gpus:
            told_us = gpu.watermark_us - context.ahead_us
            for hour in gpu.hours:
                key = GpuKey(context.epoch, gpu.uuid, hour.start_us)
                present.add(key)
                more = self._hour_told(key, hour, context, told_us=told_us)
                unattributed, energy = unattributed + more[0], energy + more[1]
        self._posting.unallocated(unattributed, energy, labels, at_us=context.at_us)
        self._close(self._rows.keys() - present)

    def close(self) -> None:
        """The agent will not report any of it again."""
        self._close(set(self._rows))

    def _close(self, keys: Iterable[GpuKey]) -> None:
        for key in keys:
            row = self._rows.pop(key)
            self._pending.unallocated[key] = UnallocatedHour(key=key, node=row.node, hour=row.hour, open=False)

    def _hour_told(self, key: GpuKey, hour: GpuHour, context: ReportContext, *, told_us: int) -> tuple[int, ...]:
        """What the hour adds since the accounting start: used time, energy."""
        row = self._rows.get(key)
        last = row.hour if row else None
        fell = last and (hour.unattributed < last.unattributed or hour.energy < last.energy)
        if fault := Fault.FELL if fell else context.room.unallocated(key.gpu, last, hour):
            self._pending.left_out(fault, context.node)
            return 0, 0
        if last == hour:
            return 0, 0
        self._rows[key] = self._pending.unallocated[key] = UnallocatedHour(key=key, node=context.node, hour=hour)
        return self._posting.since_opening(unallocated_since(last, hour, told_us=told_us, ahead_us=context.ahead_us))
