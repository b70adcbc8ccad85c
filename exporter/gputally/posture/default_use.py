"""How many GPU pods may have forgotten their class: admission hides it."""

from msgspec import Struct

from gputally.model.kube.pods import PREEMPTS
from gputally.posture.gpu_workloads import gpu_pods
from gputally.posture.objects import PostureResource
from gputally.posture.state import PostureState
from gputally.posture.wording import listed, shortened


class DefaultUse(Struct, frozen=True, kw_only=True):
    """The globalDefault ("" for none) and the GPU pods that have it; counts are None if they are unknown.

    `templates_without_class` are the workloads of which it is certain that they name no class.
    """

    name: str
    gpu_pods: int | None
    pods_with_default: int | None
    templates_without_class: tuple[str, ...]
    sentences: tuple[str, ...]


def default_use(state: PostureState) -> DefaultUse:
    """The use of the default, in numbers and words."""
    known = state.found.knows(PostureResource.CLASSES)
    name = state.default.name if state.default else ""
    pods = gpu_pods(state.found, state.rules)
    having = [each for each in pods or () if each.spec.priority_class_name in (name, "")]
    count = None if pods is None or not known else len(having)
    without = tuple(
        f"{each.kind} {each.namespace}/{each.name}"
        for each in state.workloads
        if not all(template.class_name for template in each.templates)
    )
    return DefaultUse(
        name=name,
        gpu_pods=None if pods is None else len(pods),
        pods_with_default=count,
        templates_without_class=without,
        sentences=tuple(_sentences(state, count, None if pods is None else len(pods), without)),
    )


def _sentences(state: PostureState, count: int | None, of: int | None, without: tuple[str, ...]) -> list[str]:
    if not state.found.knows(PostureResource.CLASSES):
        return ["The PriorityClasses are unknown, and so is the default."]
    default, found = state.default, []
    if default is None:
        below = [each.name for each in state.own if each.value < 0]
        above = [each.name for each in state.own if each.value > 0 and each.preemption_policy == PREEMPTS]
        found.append(_without_default(below, above))
    else:
        found.append(
            f"Pods without a class get {default.name} (value {default.value}): admission writes it into them, so a pod "
            "that forgot its class looks as if it had chosen this one."
        )
    if of is None or count is None:
        found.append("The GPU pods are unknown.")
    elif of:
        which = "that have it, and so may have forgotten their class" if default else "without a class"
        found.append(f"GPU pods {which}: {count} of {of}.")
    if without:
        found.append(f"Workloads that name no class: {listed(shortened(without))}.")
    return found


def _without_default(below: list[str], above: list[str]) -> str:
    text = "No class is the globalDefault: pods without a class have priority 0"
    if below:
        text += f", and may preempt {listed(below)}"
    return f"{text}." if not above else f"{text}; {listed(above)} may preempt them."
