"""The question whether pods would fit now, and whom they would evict: `gputally what-if`, and `/api/v1/what-if`."""

from typing import Annotated, Final

from gputally.questions.kube_values import object_name, quantity
from gputally.questions.parameter import InQuery, InvalidQuestion, Parameter, Question, whole_number

MOST_PODS: Final = 1_000
"""The most pods of one kind in one request."""
_MOST_GPUS: Final = 10_000


class WhatIfPods(Question, frozen=True, kw_only=True, rename={"class_name": "class"}):
    """So many equal pods that do not exist yet; "" for what they do not say."""

    gpus: Annotated[int | None, Parameter(help="GPUs of a pod", read=whole_number(1, _MOST_GPUS), metavar="N")] = None
    model: Annotated[
        str,
        Parameter(
            help="GPU model, or a part of its name, such as H100",
            metavar="MODEL",
            query=InQuery(description="GPU model, or a part of its name"),
        ),
    ] = ""
    class_name: Annotated[
        str,
        Parameter(help="PriorityClass", read=object_name, metavar="CLASS", default="the cluster's"),
    ] = ""
    cpu: Annotated[str, Parameter(help="CPUs of a pod, such as 16 or 500m", read=quantity("4"), metavar="CPUS")] = ""
    memory: Annotated[str, Parameter(help="memory of a pod, such as 64Gi", read=quantity("32Gi"), metavar="BYTES")] = ""
    count: Annotated[int, Parameter(help="number of equal pods", read=whole_number(1, MOST_PODS), metavar="N")] = 1
    namespace: Annotated[
        str, Parameter(help="namespace of the pods", read=object_name, metavar="NAMESPACE", short="n")
    ] = "default"

    def check(self) -> None:
        """Raises: InvalidQuestion without GPUs."""
        if self.gpus is None:
            raise InvalidQuestion("gpus", "is missing; say how many GPUs a pod needs, such as 8")
