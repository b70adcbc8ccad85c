"""What the cluster permits: PriorityClasses, ResourceQuotas and PodDisruptionBudgets."""

from typing import Any

from gputally.accounting.base.coverage import Coverage
from gputally.accounting.base.state_part import StatePart
from gputally.accounting.policy.disruption_budgets import CoveredPods, DisruptionBudgets, PodLabels
from gputally.accounting.policy.priority_classes import ClassTiers, ClassVersions
from gputally.accounting.policy.quotas import AdmissionQuotas, Quotas
from gputally.accounting.terms.tenant import Namespaces
from gputally.accounting.terms.tier import tier_of
from gputally.accounting.totals.label_limiter import LabelLimiter
from gputally.model.kube.kinds import Kind
from gputally.model.rules import Rules


class Policy:
    """PriorityClasses with their versions, quotas of tenants, disruption budgets, and the labels that these select."""

    def __init__(self, rules: Rules, namespaces: Namespaces, limiter: LabelLimiter, coverage: Coverage) -> None:
        self._rules = rules
        self.classes = ClassVersions()
        self.quotas = Quotas(rules, namespaces, self.classes, limiter)
        self.admission = AdmissionQuotas()
        self.labels = PodLabels(is_on=Kind.DISRUPTION_BUDGETS in rules.watched)
        self.budgets = DisruptionBudgets(lambda: coverage.complete_us(Kind.DISRUPTION_BUDGETS))
        self.covered = CoveredPods(self.budgets)
        self._tiers = ClassTiers(rules, limiter)

    @property
    def parts(self) -> tuple[StatePart[Any], ...]:
        """The parts of the state."""
        return self._tiers, self.classes, self.quotas, self.admission, self.labels, self.budgets, self.covered

    def tier_of(self, class_name: str, labels: tuple[tuple[str, str], ...]) -> str:
        """The present tier of pods with these labels that name that class, or none ("")."""
        name = class_name or self.classes.default()
        return tier_of(name, self.classes.value_of(name), self._rules, labels)
