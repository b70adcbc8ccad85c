"""The question why a pod, or the pods of a job, wait for GPUs: `gputally why`, and `/api/v1/why`."""

from typing import Annotated

from gputally.questions.parameter import InvalidQuestion, Parameter, Question


class Why(Question, frozen=True, kw_only=True):
    """One pod, or the pods of one job; without a namespace, the only pod of that name."""

    namespace: Annotated[str, Parameter(help="of the pod or job; without it, the only pod of that name")] = ""
    pod: Annotated[str, Parameter(help="the name of a pod")] = ""
    job: Annotated[str, Parameter(help="instead of pod: the name of a job")] = ""

    @property
    def subject(self) -> str:
        """The pod or job as people write it."""
        place = f"{self.namespace}/" if self.namespace else ""
        return f"{place}{self.pod}" if self.pod else f"job {place}{self.job}"

    def check(self) -> None:
        """Raises: InvalidQuestion if it names no single pod or job."""
        if bool(self.pod) == bool(self.job):
            raise InvalidQuestion("pod", "name one pod or one job: use namespace with pod, or namespace with job")
        if self.job and not self.namespace:
            raise InvalidQuestion("namespace", "is missing; name that of the job")
