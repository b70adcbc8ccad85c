"""The annotations of pods that gputally reads.

Anyone who may create pods may write 256 KiB of others, which take megabytes as Python strings: they are skipped while
an object is decoded.
"""

from typing import Final, Protocol

from msgspec import Struct, field
from msgspec.structs import fields


class Texts(Protocol):
    """Labels or annotations."""

    def get(self, key: str, /) -> str | None:
        """The value, None without one."""
        ...


class PodAnnotations(Struct, frozen=True, gc=False):
    """One field for each annotation, with its key; whoever reads another one adds it here."""

    last_checkpoint: str | None = field(default=None, name="gputally.io/last-checkpoint")
    checkpoint_interval: str | None = field(default=None, name="gputally.io/checkpoint-interval")
    saves_on_sigterm: str | None = field(default=None, name="gputally.io/saves-on-sigterm")
    progress: str | None = field(default=None, name="gputally.io/progress")
    progress_unit: str | None = field(default=None, name="gputally.io/progress-unit")
    save_duration: str | None = field(default=None, name="gputally.io/save-duration")
    posture_accept: str | None = field(default=None, name="gputally.io/posture-accept")
    kube_group: str | None = field(default=None, name="scheduling.k8s.io/group-name")
    volcano_group: str | None = field(default=None, name="scheduling.volcano.sh/group-name")
    volcano_group_size: str | None = field(default=None, name="scheduling.volcano.sh/group-min-member")
    volcano_task: str | None = field(default=None, name="volcano.sh/task-spec")
    volcano_job_version: str | None = field(default=None, name="volcano.sh/job-version")
    leader_worker_set_size: str | None = field(default=None, name="leaderworkerset.sigs.k8s.io/size")
    kueue_workload: str | None = field(default=None, name="kueue.x-k8s.io/workload")
    kueue_group_size: str | None = field(default=None, name="kueue.x-k8s.io/pod-group-total-count")
    kueue_group_serves: str | None = field(default=None, name="kueue.x-k8s.io/pod-group-serving")
    kai_group: str | None = field(default=None, name="pod-group-name")
    hami_allocated: str | None = field(default=None, name="hami.io/vgpu-devices-allocated")
    gpu_fraction: str | None = field(default=None, name="gpu-fraction")
    gpu_memory: str | None = field(default=None, name="gpu-memory")
    gpu_fraction_devices: str | None = field(default=None, name="gpu-fraction-num-devices")

    def get(self, key: str, /) -> str | None:
        """The annotation with that key, None without one. Raises: KeyError for a key without a field."""
        value: str | None = getattr(self, _FIELDS[key])
        return value


_FIELDS: Final = {each.encode_name: each.name for each in fields(PodAnnotations)}
NO_ANNOTATIONS: Final = PodAnnotations()
