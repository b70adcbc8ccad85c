"""Sets of values that together cover every part of the chart, by the name of their golden file."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

EXAMPLES: Final = Path(__file__).parents[2] / "examples"

_CERTIFICATE: Final = {"cert_file": "/etc/gputally/tls/tls.crt", "key_file": "/etc/gputally/tls/tls.key"}
_CLIENTS: Final = {
    "client_ca_file": "/etc/gputally/tls/ca.crt",
    "client_auth_type": "RequireAndVerifyClientCert",
}
_TLS: Final = {
    "tlsSecret": "certificate",
    "config": {
        "tls_server_config": _CERTIFICATE,
        "basic_auth_users": {"prometheus": f"$2b$10${'a' * 53}"},
    },
}
MUTUAL: Final = {"tlsSecret": "certificate", "config": {"tls_server_config": _CERTIFICATE | _CLIENTS}}
_PASSWORD: Final = {"username": {"name": "scrape", "key": "user"}, "password": {"name": "scrape", "key": "password"}}
_MONITOR: Final = {
    "enabled": True,
    "additionalLabels": {"release": "kube-prometheus-stack"},
    "interval": "30s",
    "scrapeTimeout": "10s",
    "sampleLimit": 1_000_000,
}
_POD: Final = {
    "podAnnotations": {"example.com/a": "true"},
    "podLabels": {"example.com/b": "c"},
    "extraArgs": ["--web.max-requests=10"],
    "extraEnv": [{"name": "TZ", "value": "UTC"}],
    "extraVolumes": [{"name": "extra", "emptyDir": {}}],
    "extraVolumeMounts": [{"name": "extra", "mountPath": "/extra"}],
    "priorityClassName": "system-node-critical",
    "affinity": {"podAntiAffinity": {}},
}

MONITORED: Final = {
    "prometheusRule": {"enabled": True, "additionalLabels": {"release": "kube-prometheus-stack"}},
    "dashboards": {"enabled": True, "annotations": {"grafana_folder": "GPU"}, "namespace": "monitoring"},
}
"""Renders copies of generated files, which need no golden files."""


def _example(path: str) -> Any:  # noqa: ANN401 - YAML
    return yaml.safe_load((EXAMPLES / path).read_text().replace("as_of: ", "as_of: !!str "))


MATRIX: Final[Mapping[str, Mapping[str, Any]]] = {
    "defaults": {},
    "priced": {"configuration": _example("config.yaml"), "priceBook": _example("prices/research-team.yaml")},
    "guarded": {
        "clusterName": "west",
        "commonLabels": {"team": "platform"},
        "global": {"imageRegistry": "registry.example", "imagePullSecrets": ["pull"]},
        "image": {"pullSecrets": ["pull", "pull-more"], "tag": "0.1.0-debian"},
        "rbac": {"extraRules": [{"apiGroups": ["kubeflow.org"], "resources": ["notebooks"], "verbs": ["get"]}]},
        "watch": {
            "podDisruptionBudgets": True,
            "resourceQuotas": True,
            "failedCreates": True,
            "kueueWorkloads": True,
            "volcanoPodGroups": True,
            "coschedulingPodGroups": True,
            "corePodGroups": True,
        },
        "ledger": {"retention": "400d", "storageClass": "ssd", "annotations": {"example.com/backup": "daily"}},
        "networkPolicy": {"enabled": True, "apiServerCidrs": ["10.0.0.1/32"]},
        "reports": {
            "enabled": True,
            "timeZone": "Europe/Berlin",
            "existingClaim": "showback",
            "webhookSecret": "chat",
            "tokenSecret": "reports",
            "caSecret": "certificate",
        },
        "serviceMonitor": {**_MONITOR, "basicAuth": _PASSWORD, "tlsConfig": {"insecureSkipVerify": True}},
        "podMonitor": {**_MONITOR, "authorization": {"credentials": {"name": "scrape", "key": "token"}}},
        "aggregator": {
            "web": _TLS,
            "agentsTls": {"caSecret": "ca", "clientSecret": "client"},
            "preemptionWebhookSecret": "owners",
            **_POD,
        },
        "agent": {"web": MUTUAL, "podLogs": True, "hostPID": True, "resourceNames": ["example.com/gpu"], **_POD},
    },
    "existing": {
        "fullnameOverride": "books",
        "serviceAccount": {"create": False, "name": "mine"},
        "rbac": {"create": False},
        "usageToken": {"existingSecret": "tokens", "key": "agents"},
        "ledger": {"existingClaim": "claim"},
        "aggregator": {"web": {"existingSecret": "web", "scheme": "HTTPS", "probes": "tcp"}},
        "agent": {
            "web": {"existingSecret": "web", "scheme": "HTTP"},
            "runtimeClassName": "",
            "nodeSelector": {"pool": "gpu"},
        },
    },
    "mig": {
        "agent": {"mig": True},
        "rbac": {"ownerWalk": False},
        "reports": {"enabled": True, "webhookSecret": "chat", "window": "last-week", "schedule": "0 6 * * 1"},
    },
    "gke": {
        "agent": {
            "driverPath": "/home/kubernetes/bin/nvidia",
            "runtimeClassName": "",
            "nodeSelector": {"nvidia.com/gpu.present": None, "cloud.google.com/gke-accelerator": "nvidia-l4"},
        }
    },
    "aggregator-only": {
        "agent": {"enabled": False},
        "ledger": {"persistent": False},
        "image": {"digest": f"sha256:{'0' * 64}"},
        "podMonitor": {"enabled": True},
        "serviceMonitor": {"enabled": True},
        "networkPolicy": {"enabled": True, "prometheus": [], "dns": []},
    },
}
