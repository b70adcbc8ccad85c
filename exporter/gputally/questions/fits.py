"""The question what pod sizes fit now: `gputally fits`, and `/api/v1/fits`."""

from typing import Annotated

from gputally.questions.kube_values import quantity
from gputally.questions.parameter import InQuery, Parameter, Question


class Fits(Question, frozen=True, kw_only=True):
    """The free GPUs of a model, "" for all, for pods that need so much of a node for each GPU."""

    model: Annotated[
        str,
        Parameter(
            help="only GPU models of this name, or a part of it, such as H100",
            metavar="MODEL",
            query=InQuery(description="GPU model, or a part of its name"),
        ),
    ] = ""
    cpu: Annotated[
        str,
        Parameter(
            help="CPUs of a pod for each GPU, such as 8",
            read=quantity("4", is_positive=True),
            metavar="CPUS",
            query=InQuery(description="CPUs for each GPU, such as 8"),
        ),
    ] = "1"
    memory: Annotated[
        str,
        Parameter(
            help="memory of a pod for each GPU, such as 64Gi",
            read=quantity("32Gi", is_positive=True),
            metavar="BYTES",
            query=InQuery(description="memory for each GPU, such as 64Gi"),
        ),
    ] = "1Gi"
