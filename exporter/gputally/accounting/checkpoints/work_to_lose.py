"""Which pods have work that they can lose: neither those that serve users, nor placeholders."""

from gputally.accounting.terms.expression import matched
from gputally.accounting.terms.serving_tiers import serves
from gputally.model.kube.pods import Pod
from gputally.model.lost_work import PodCheckpoint
from gputally.model.pod_record import PodRecord
from gputally.model.rules import Rules


def has_work(record: PodRecord, checkpoint: PodCheckpoint, rules: Rules) -> bool:
    """Whether a pod, which states this `checkpoint`, can lose work; its latest tier decides."""
    if checkpoint.is_placeholder:
        return False
    tier = record.terms[-1].tier if record.terms else ""
    return not (serves(tier, rules) or _keeps_free(tier, record.class_name, rules))


def _keeps_free(tier: str, class_name: str, rules: Rules) -> bool:
    declared = rules.placeholders
    by_tier = (matched(each, tier) for each in declared.tiers)
    by_class = (matched(each, class_name) for each in declared.classes)
    return any(found is not None for found in (*by_tier, *by_class))


def runs_placeholders(pod: Pod, rules: Rules) -> bool:
    """Whether the images of all containers of a pod are declared to do no work; init containers do not count."""
    images = rules.placeholders.images
    return all(any(matched(image, each.image) is not None for image in images) for each in pod.spec.containers)
