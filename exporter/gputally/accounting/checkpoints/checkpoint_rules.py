"""The checkpoint interval that the configuration assumes for pods that declare none."""

from gputally.model.pod_record import PodRecord
from gputally.model.rules import Rules


def declared_interval(record: PodRecord, rules: Rules) -> int | None:
    """The interval (µs) of the pod's tier; None without a rule for it."""
    if not rules.checkpoints:  # the usual case
        return None
    tier = record.terms[-1].tier if record.terms else ""
    return next((each.interval_us for each in rules.checkpoints if each.tier in ("", tier)), None)
