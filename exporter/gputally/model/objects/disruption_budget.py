"""The spec and the status of a PodDisruptionBudget."""

from gputally.model.objects.camel import Camel
from gputally.model.objects.label_selector import Selector


class DisruptionBudgetSpec(Camel, frozen=True):
    """A number or a percentage of the pods that it selects; at most one of the two is set."""

    min_available: str | int | None = None
    max_unavailable: str | int | None = None
    selector: Selector | None = None


class DisruptionBudgetStatus(Camel, frozen=True):
    """What the disruption controller computed for the spec of the observed generation."""

    disruptions_allowed: int = 0
    observed_generation: int = 0
