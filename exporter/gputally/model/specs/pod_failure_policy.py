"""The podFailurePolicy of a Job, as the API writes it, with the parts that say something about preempted pods."""

from msgspec import Struct


class ExitCodes(Struct, rename="camel", frozen=True, gc=False):
    """The exit codes that a rule matches, or does not match: `operator` is In or NotIn."""

    operator: str = ""
    values: tuple[int, ...] = ()


class PodConditionPattern(Struct, rename="camel", frozen=True, gc=False):
    """A condition of a pod that a rule matches."""

    type: str = ""
    status: str = "True"


class PodFailureRule(Struct, rename="camel", frozen=True, gc=False):
    """What to do with a failed pod: `action` is Count, Ignore, FailJob or FailIndex."""

    action: str = ""
    on_exit_codes: ExitCodes | None = None
    on_pod_conditions: tuple[PodConditionPattern, ...] | None = None


class PodFailurePolicy(Struct, rename="camel", frozen=True, gc=False):
    """The first rule that matches a failed pod decides."""

    rules: tuple[PodFailureRule, ...] = ()
