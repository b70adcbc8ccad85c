"""How close in time preemptions of pods of a job are one preemption of the job."""

from typing import Final

from gputally.model.units import US_PER_SECOND

TOGETHER_US: Final = 10 * US_PER_SECOND
"""Pods of a job that are decided within this time of the first observed one are one preemption. kube-scheduler sends 50
requests a second, two for each victim."""
QUEUE_TOGETHER_US: Final = 60 * US_PER_SECOND
"""The same for pods that a queue stopped for the same workload: controllers that delete pods send about 20 requests a
second."""
CLOSED_US: Final = 30 * US_PER_SECOND
"""Once the watch of pods is complete up to so long after that one's decision, no further pod is added: the scheduler
marks a pod, and its deletion, with which it counts, follows within seconds."""
QUEUE_CLOSED_US: Final = QUEUE_TOGETHER_US
"""The same for a preemption by a queue, after it was first observed: its Workload may be observed late."""
