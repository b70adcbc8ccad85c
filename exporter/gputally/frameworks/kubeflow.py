"""Kubeflow's training operator: PyTorchJobs and others, of which the pods wait for a lost one.

Shapes: kubeflow.org/v1. Source: training-operator pkg/controller.v1.
"""

from typing import Final

import msgspec
from msgspec import field

from gputally.frameworks.framework import Framework, GroupLabels, JobLabel, OnLoss
from gputally.frameworks.manifest import Copies, PodKind, Roles, number_of
from gputally.model.kube.meta import Camel

GROUP: Final = "kubeflow.org"
PYTORCH_JOB: Final = "PyTorchJob"
PYTORCH_ROLES: Final = "pytorchReplicaSpecs"
"""The field of the spec that has the templates of a PyTorchJob by role."""
JOB_KINDS: Final = frozenset({PYTORCH_JOB, "TFJob", "MPIJob", "XGBoostJob", "PaddleJob", "JAXJob"})
"""The kinds of Kubeflow, whose pods are labelled alike."""
TRAINING_JOB: Final = "TrainingJob"
"""What all of them are called by that label."""
_NAME: Final = "training.kubeflow.org/job-name"
_READ: Final = (PYTORCH_JOB, "TFJob", "MPIJob", "XGBoostJob")


class _TrainingSpec(Camel, frozen=True):
    """The roles of each kind of job have a field of their own."""

    pytorch: dict[str, Copies] = field(default_factory=dict, name=PYTORCH_ROLES)
    tensorflow: dict[str, Copies] = field(default_factory=dict, name="tfReplicaSpecs")
    mpi: dict[str, Copies] = field(default_factory=dict, name="mpiReplicaSpecs")
    xgboost: dict[str, Copies] = field(default_factory=dict, name="xgbReplicaSpecs")


class _Training(Camel, frozen=True):
    spec: _TrainingSpec = field(default_factory=_TrainingSpec)


def _roles(body: bytes) -> Roles:
    spec = msgspec.json.decode(body, type=_Training).spec
    for roles in (spec.pytorch, spec.tensorflow, spec.mpi, spec.xgboost):
        for role, each in roles.items():
            yield role, each.template, number_of(each.replicas)


KUBEFLOW: Final = Framework(
    jobs=(JobLabel(TRAINING_JOB, _NAME),),
    groups=(GroupLabels(TRAINING_JOB, OnLoss.WAIT, (_NAME,)),),
    manifests={PodKind(GROUP, kind): _roles for kind in _READ},
)
