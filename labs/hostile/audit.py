"""Checks the aggregators' API requests in the API server's audit log for unexpected ones."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.cluster.manifests import Json

POLICY: Final = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "Metadata", "userGroups": ["system:serviceaccounts:gpu-accounting"]},
        {"level": "None"},
    ],
}
ACCOUNTS: Final = "gpu-accounting"
"""The namespace that contains only the aggregators' ServiceAccounts."""
WATCHED: Final = {
    "/apis/policy/v1/poddisruptionbudgets",
    "/api/v1/pods",
    "/api/v1/nodes",
    "/api/v1/namespaces",
    "/api/v1/events",
    "/api/v1/namespaces/default/events",
    "/apis/batch/v1/jobs",
    "/apis/scheduling.k8s.io/v1/priorityclasses",
}


def arguments(scratch: Path) -> tuple[str, ...]:
    """Flags for the API server; the log is in `scratch`."""
    policy = scratch / "audit-policy.json"
    policy.write_text(json.dumps(POLICY))
    return (f"--audit-policy-file={policy}", f"--audit-log-path={log(scratch)}", "--audit-log-mode=blocking")


def log(scratch: Path) -> Path:
    return scratch / "audit.log"


@dataclass(frozen=True)
class Requests:
    """The requests of one aggregator."""

    entries: list[Json]

    def __len__(self) -> int:
        return len(self.entries)

    def by_path(self) -> Counter[str]:
        """Request counts: watched resources and discovery by path, owner lookups by resource."""
        return Counter(f"{entry['verb']} {_collection(entry)} {_code(entry)}" for entry in self.entries)

    def bytes_of_paths(self) -> int:
        """Length of the longest request URI."""
        return max((len(entry["requestURI"]) for entry in self.entries), default=0)

    def lists_of_pods(self) -> int:
        """Lists of all pods, however many pages each has: one per start, and one beside the watch of a later start."""
        lists = (entry for entry in self.entries if entry["verb"] == "list" and _path(entry) == "/api/v1/pods")
        return sum("continue=" not in entry["requestURI"] for entry in lists)

    def watches_of_pods(self) -> int:
        """Watches of pods: one per start, and one per reconnect, as a busy API server closes slow watches."""
        return sum(entry["verb"] == "watch" and _path(entry) == "/api/v1/pods" for entry in self.entries)

    def lookups(self) -> int:
        """Owner lookups."""
        return sum(_is_lookup(entry) for entry in self.entries)

    def forbidden_lookups(self) -> int:
        """Owner lookups rejected by RBAC."""
        return sum(_is_lookup(entry) and _code(entry) == 403 for entry in self.entries)

    def unexpected(self, namespaces: set[str]) -> Iterator[str]:
        """Requests other than watches, discovery, and owner lookups in these namespaces or in none."""
        for entry in self.entries:
            if not (_is_watched(entry) or _is_discovery(entry) or _is_lookup(entry, namespaces)):
                yield f"{entry['verb']} {entry['requestURI'][:200]} {_code(entry)}"


def requests(scratch: Path, account: str) -> Requests:
    """All requests of a ServiceAccount with a complete or started response."""
    user = f"system:serviceaccount:{ACCOUNTS}:{account}"
    with log(scratch).open() as lines:
        entries = [json.loads(line) for line in lines]
    mine = [entry for entry in entries if entry["user"]["username"] == user]
    latest = {entry["auditID"]: entry for entry in mine}  # a watch has one entry for its start and one for its end
    return Requests(list(latest.values()))


def _path(entry: Json) -> str:
    path: str = entry["requestURI"].partition("?")[0]
    return path


def _code(entry: Json) -> int:
    code: int = entry.get("responseStatus", {}).get("code", 0)
    return code


def _collection(entry: Json) -> str:
    if not _is_lookup(entry):
        return _path(entry)
    reference = entry["objectRef"]
    group = reference.get("apiGroup", "")
    return f"{group}/{reference['resource']}" if group else str(reference["resource"])


def _is_watched(entry: Json) -> bool:
    """Whether this is a list, or a watch with a start version and a timeout, as the aggregator sends them."""
    expected_form = entry["verb"] == "list" or all(
        name in entry["requestURI"] for name in ("resourceVersion=", "timeoutSeconds=")
    )
    return expected_form and entry["verb"] in ("list", "watch") and _path(entry) in WATCHED


def _is_discovery(entry: Json) -> bool:
    parts = _path(entry).strip("/").split("/")
    root = parts[0] == "apis" and len(parts) <= 3
    return entry["verb"] == "get" and (root or parts in (["api"], ["api", "v1"], ["version"]))


def _is_lookup(entry: Json, namespaces: set[str] | None = None) -> bool:
    """Whether this gets one object by name, without query and subresource."""
    reference = entry.get("objectRef", {})
    wanted = entry["verb"] == "get" and "name" in reference and "subresource" not in reference
    place = None if reference.get("resource") == "namespaces" else reference.get("namespace")
    here = namespaces is None or place is None or place in namespaces
    return wanted and here and "?" not in entry["requestURI"]
