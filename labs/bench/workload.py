"""A fleet of realistic size: 1-GPU pods of about 5 kB JSON, on 8-GPU nodes, for 60 teams in 4 tiers."""

import random
from collections.abc import Iterator
from datetime import UTC, datetime

from tests.cluster.manifests import GPU, Json, metadata, namespace, priority_class

GPUS_PER_NODE = 8
TEAMS = 60
TIERS = {"inference-critical": 1_000_000, "inference-standard": 100_000, "training": 10_000, "best-effort": -10}
MODELS = {
    "NVIDIA-H200": "p5en.48xlarge",
    "NVIDIA-H100-80GB-HBM3": "p5.48xlarge",
    "NVIDIA-A100-SXM4-80GB": "p4de.24xlarge",
    "NVIDIA-A100-SXM4-40GB": "p4d.24xlarge",
    "NVIDIA-L40S": "g6e.48xlarge",
    "NVIDIA-A10G": "g5.48xlarge",
}
POOLS_PER_MODEL = 2
_PODS_OF_A_JOB = 4
_PODS_OF_A_REPLICA_SET = 10
_PODS_OF_A_TEAM = 20
"""As many as whole Jobs and whole ReplicaSets have."""
MARKER = "marker"
"""A namespace and team only for measurements."""
ZONES = ("eu-central-1a", "eu-central-1b", "eu-central-1c")
REGISTRY = "registry.example"
DIGEST = "5b0bcabd1ed22e9fb1310cf6c2dec7cdef19f0ad69efa1f392e94a4333501270"


def namespaces() -> list[Json]:
    """One namespace per team, and one for the marker."""
    teams = [f"team-{number:02d}" for number in range(TEAMS)]
    return [namespace(name, labels={"team": name, "cost-center": f"cc-{name}"}) for name in (*teams, MARKER)]


def priority_classes() -> list[Json]:
    return [priority_class(name, value) for name, value in TIERS.items()]


def node_of(pod: int) -> str:
    """The node of pod number `pod`."""
    return f"gpu-node-{pod // GPUS_PER_NODE:05d}"


def node(number: int) -> Json:
    """A ready node as reported by a kubelet with GPU Feature Discovery."""
    model = list(MODELS)[number % len(MODELS)]
    pool = f"{model.lower()}-{number // len(MODELS) % POOLS_PER_MODEL}"
    resources = {"cpu": "192", "memory": "2097152Mi", "pods": "110", "ephemeral-storage": "3800Gi", GPU: "8"}
    name = node_of(number * GPUS_PER_NODE)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": metadata(name, labels=_node_labels(name, number, model, pool)),
        "spec": {"providerID": f"aws:///{ZONES[number % 3]}/i-0{number:016x}"},
        "status": {
            "capacity": resources,
            "allocatable": resources | {"cpu": "190", "memory": "2080000Mi"},
            "conditions": list(_node_conditions()),
            "images": [{"names": [f"{REGISTRY}/image-{n}:1.{n}.0"], "sizeBytes": 10**9 + n} for n in range(10)],
            "nodeInfo": _NODE_INFO,
        },
    }


_NODE_INFO = {
    "architecture": "amd64",
    "bootID": "3f0c3b0e-6a52-4b52-8ec7-3c2f6f1d9a0e",
    "containerRuntimeVersion": "containerd://2.1.4",
    "kernelVersion": "6.8.0-1030-aws",
    "kubeProxyVersion": "v1.36.3",
    "kubeletVersion": "v1.36.3",
    "machineID": "ec2f5d1c5d5b4c7a9f2f0a4f3f5d0a11",
    "operatingSystem": "linux",
    "osImage": "Ubuntu 24.04.3 LTS",
    "systemUUID": "ec2f5d1c-5d5b-4c7a-9f2f-0a4f3f5d0a11",
}


def _node_labels(name: str, number: int, model: str, pool: str) -> dict[str, str]:
    return {
        "kubernetes.io/hostname": name,
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": MODELS[model],
        "topology.kubernetes.io/region": "eu-central-1",
        "topology.kubernetes.io/zone": ZONES[number % 3],
        "karpenter.sh/nodepool": pool,
        "karpenter.sh/capacity-type": "on-demand",
        f"{GPU}.present": "true",
        f"{GPU}.product": model,
        f"{GPU}.count": str(GPUS_PER_NODE),
        f"{GPU}.memory": "81559",
        f"{GPU}.family": "hopper",
        f"{GPU}.replicas": "1",
        f"{GPU}.sharing-strategy": "none",
        "nvidia.com/mig.strategy": "single",
        "nvidia.com/cuda.driver.major": "570",
        "nvidia.com/gfd.timestamp": "1782864000",
    }


def _node_conditions() -> Iterator[Json]:
    since = timestamp()
    for kind in ("MemoryPressure", "DiskPressure", "PIDPressure"):
        yield _condition(kind, since, status="False", reason=f"KubeletHasNo{kind}")
    yield _condition("Ready", since, reason="KubeletReady", message="kubelet is posting ready status")


def pod(number: int, *, name: str = "", place: str = "", tier: str = "", on: str = "") -> Json:
    """Pod `number`, bound but not started; team and tier are derived from the number unless given."""
    chance = random.Random(number // _PODS_OF_A_TEAM)  # an owner is in the namespace of its pods, which are alike
    place = place or f"team-{chance.randrange(TEAMS):02d}"
    tier = tier or chance.choice(list(TIERS))
    owner = _job(number) if tier in ("training", "best-effort") else _replica_set(number)
    name = name or f"{owner['name']}-{random.Random(number).getrandbits(32):08x}"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata(name, place, _pod_labels(owner, place))
        | {"annotations": _pod_annotations(number), "ownerReferences": [owner]},
        "spec": _pod_spec(number, tier) | {"nodeName": on or node_of(number), "priorityClassName": tier},
    }


def marked(number: int, *, name: str) -> Json:
    """An unbound pod of the marker team."""
    unbound = pod(number, name=name, place=MARKER, tier="training")
    del unbound["spec"]["nodeName"]
    return unbound


def binding(pod: Json, node: str) -> Json:
    """The body that a scheduler posts to the `binding` subresource of a pod."""
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    return {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod["metadata"]["name"]}, "target": target}


def _job(number: int) -> Json:
    of = number // _PODS_OF_A_JOB
    return _owner("batch/v1", "Job", f"finetune-llama-{of:06d}", of)


def _replica_set(number: int) -> Json:
    of = number // _PODS_OF_A_REPLICA_SET
    return _owner("apps/v1", "ReplicaSet", f"serve-llama-{of:05d}-7d4b9c8f5d", of)


def _owner(version: str, kind: str, name: str, number: int) -> Json:
    uid = f"{number:08x}-5c1f-4a57-9d0e-{kind.lower().encode().hex()[:12]:0<12}"
    return {"apiVersion": version, "kind": kind, "name": name, "uid": uid, "controller": True}


def _pod_labels(owner: Json, place: str) -> dict[str, str]:
    name = owner["name"]
    own = {"batch.kubernetes.io/job-name": name}
    if owner["kind"] == "ReplicaSet":
        own = {"pod-template-hash": "7d4b9c8f5d", "app.kubernetes.io/instance": name.removesuffix("-7d4b9c8f5d")}
    return own | {"team": place}


def _pod_annotations(number: int) -> dict[str, str]:
    network = f'[{{"name":"aws-cni","interface":"eth0","ips":["{_address(number)}"],"default":true,"dns":{{}}}}]'
    return {"k8s.v1.cni.cncf.io/network-status": network}


def _pod_spec(number: int, tier: str) -> Json:
    container = {
        "name": "main",
        "image": f"{REGISTRY}/llm-runtime:2026.07.1",
        "command": ["/opt/venv/bin/python", "-m", "runtime.launch"],
        "env": [*({"name": key, "value": value} for key, value in _environment(number)), _FROM_SECRET],
        "resources": {"limits": {"cpu": "12", "memory": "120Gi", GPU: "1"}},
        "volumeMounts": [{"name": volume["name"], "mountPath": f"/{volume['name']}"} for volume in _VOLUMES],
    }
    return {
        "containers": [container],
        "volumes": list(_VOLUMES),
        "restartPolicy": "Never" if tier in ("training", "best-effort") else "Always",
        "automountServiceAccountToken": False,
    }


_VOLUMES: tuple[Json, ...] = (
    {"name": "models", "persistentVolumeClaim": {"claimName": "models-shared", "readOnly": True}},
    {"name": "dshm", "emptyDir": {"medium": "Memory", "sizeLimit": "32Gi"}},
)
_FROM_SECRET = {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hugging-face", "key": "token"}}}


def _environment(number: int) -> Iterator[tuple[str, str]]:
    yield "NCCL_DEBUG", "WARN"
    yield "RANK", str(number % 4)


def running(number: int, *, bound: str, started: str, ready: bool = True) -> Json:
    """The status patch of a running pod."""
    return _status(number, "Running", {"running": {"startedAt": started}}, bound=bound, ready=ready)


def succeeded(number: int, *, bound: str, started: str) -> Json:
    """The status patch of a pod that ends now."""
    ended = {"exitCode": 0, "reason": "Completed", "startedAt": started, "finishedAt": timestamp()}
    return _status(number, "Succeeded", {"running": None, "terminated": ended}, bound=bound, ready=False)


def _status(number: int, phase: str, state: Json, *, bound: str, ready: bool) -> Json:
    main = {
        "name": "main",
        "image": f"{REGISTRY}/llm-runtime:2026.07.1",
        "imageID": f"{REGISTRY}/llm-runtime@sha256:{DIGEST}",
        "containerID": f"containerd://{random.Random(-number).getrandbits(256):064x}",
        "ready": ready,
        "started": True,
        "restartCount": 0,
        "state": state,
        "lastState": {},
    }
    conditions = [_condition("PodScheduled", bound), _condition("Ready", timestamp(), status=str(ready))]
    status = {
        "phase": phase,
        "startTime": bound,
        "hostIP": "10.12.0.17",
        "podIP": _address(number),
        "conditions": conditions,
        "containerStatuses": [main],
    }
    return {"status": status}


def _condition(kind: str, since: str, *, status: str = "True", reason: str = "", message: str = "") -> Json:
    more = {name: value for name, value in (("reason", reason), ("message", message)) if value}
    return {"type": kind, "status": status, "lastTransitionTime": since, **more}


def _address(number: int) -> str:
    return f"10.{64 + number // 65_536}.{number // 256 % 256}.{number % 256}"


def timestamp() -> str:
    """The current time in the API's format."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
