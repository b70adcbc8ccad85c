"""The taints that a pod tolerates. Shape: k8s.io/api core/v1."""

from gputally.model.objects.camel import Camel


class Toleration(Camel, frozen=True):
    """Tolerates a taint; an empty key with the operator Exists tolerates all, an empty effect every effect."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
