"""Names the type of the documents that ledgers keep of each part, for the next process alone."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from gputally.accounting.disruptions.disruptions import Disruptions
from gputally.accounting.disruptions.job_preemptions import PreemptedJob, RepeatVictims
from gputally.accounting.disruptions.kueue_evictions import EvictedWorkload, QueueEvictions
from gputally.accounting.disruptions.kueue_preemptors import PossiblePreemptor, QueuePreemptors
from gputally.accounting.disruptions.node_signals import NodeSignal, NodeSignals
from gputally.accounting.disruptions.preemptions import Preemptions
from gputally.accounting.groups.gang_size import GangRecord
from gputally.accounting.groups.gang_states import GangStates
from gputally.accounting.jobs.checkpoints import Checkpoints
from gputally.accounting.jobs.cost import JobCostRecord, JobCosts
from gputally.accounting.jobs.jobs import Jobs
from gputally.accounting.jobs.progress import JobProgress, PodProgress
from gputally.accounting.jobs.record import JobRecord
from gputally.accounting.lost_work.container_restarts import ContainerRestarts, PodRuns
from gputally.accounting.lost_work.loss_book import PodLoss
from gputally.accounting.lost_work.lost_work import LostWorkPart
from gputally.accounting.nodes.inventory import UnknownOffers
from gputally.accounting.nodes.most_capacity import ModelCapacity, MostCapacity
from gputally.accounting.policy.priority_classes import ClassVersions
from gputally.accounting.uncreated.waits import UncreatedWaits
from gputally.accounting.waiting.fitting import AskedSizes
from gputally.accounting.waiting.waiting import Waiting
from gputally.accounting.watched.agents import Agents
from gputally.accounting.watched.unaccounted_pods import UnaccountedDays, UnaccountedPods
from gputally.model.disruptions import Disruption, Preemption
from gputally.model.kube.policy import ClassVersion
from gputally.model.lost_work import PodCheckpoint
from gputally.model.node_record import UnknownOffer
from gputally.model.pod_sizes import AskedSize
from gputally.model.unaccounted import UnaccountedDay, UnaccountedPod
from gputally.model.usage import AgentPod
from gputally.model.waits import PodWait, UncreatedWait

DOCUMENTS: Final[Mapping[str, type[Struct]]] = {
    Agents.name: AgentPod,
    AskedSizes.name: AskedSize,
    Checkpoints.name: PodCheckpoint,
    ClassVersions.name: ClassVersion,
    ContainerRestarts.name: PodRuns,
    Disruptions.name: Disruption,
    GangStates.name: GangRecord,
    JobCosts.name: JobCostRecord,
    JobProgress.name: PodProgress,
    Jobs.name: JobRecord,
    LostWorkPart.name: PodLoss,
    MostCapacity.name: ModelCapacity,
    NodeSignals.name: NodeSignal,
    Preemptions.name: Preemption,
    QueueEvictions.name: EvictedWorkload,
    QueuePreemptors.name: PossiblePreemptor,
    RepeatVictims.name: PreemptedJob,
    UnaccountedDays.name: UnaccountedDay,
    UnaccountedPods.name: UnaccountedPod,
    UncreatedWaits.name: UncreatedWait,
    UnknownOffers.name: UnknownOffer,
    Waiting.name: PodWait,
}
