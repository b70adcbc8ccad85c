"""KServe: the pods of an inference service work alone."""

from typing import Final

from gputally.frameworks.framework import Framework, JobLabel

KSERVE: Final = Framework(jobs=(JobLabel("InferenceService", "serving.kserve.io/inferenceservice"),))
