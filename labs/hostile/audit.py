"""What the aggregators asked the API server for, by the server's own audit log, and whether they had any reason to."""

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
"""The namespace of the aggregators' ServiceAccounts, which nobody else has one in."""
WATCHED: Final = {
    "/api/v1/pods",
    "/api/v1/nodes",
    "/api/v1/namespaces",
    "/api/v1/events",
    "/apis/scheduling.k8s.io/v1/priorityclasses",
}


def arguments(scratch: Path) -> tuple[str, ...]:
    """Flags for the API server; the log lies in `scratch`."""
    policy = scratch / "audit-policy.json"
    policy.write_text(json.dumps(POLICY))
    return (f"--audit-policy-file={policy}", f"--audit-log-path={log(scratch)}", "--audit-log-mode=blocking")


def log(scratch: Path) -> Path:
    return scratch / "audit.log"


@dataclass(frozen=True)
class Requests:
    """Those of one aggregator."""

    entries: list[Json]

    def __len__(self) -> int:
        return len(self.entries)

    def by_path(self) -> Counter[str]:
        """How many of which kind: watched resources and discovery by their path, owners by their collection."""
        return Counter(f"{entry['verb']} {_collection(entry)} {_code(entry)}" for entry in self.entries)

    def bytes_of_paths(self) -> int:
        """Of the longest request line."""
        return max((len(entry["requestURI"]) for entry in self.entries), default=0)

    def lists_of_pods(self) -> int:
        """Every watch needs one list; each start one at most."""
        return sum(entry["verb"] == "list" and _path(entry) == "/api/v1/pods" for entry in self.entries)

    def watches_of_pods(self) -> int:
        """One each start, and one more whenever it ended, as a busy API server ends those who do not keep up."""
        return sum(entry["verb"] == "watch" and _path(entry) == "/api/v1/pods" for entry in self.entries)

    def lookups(self) -> int:
        """Of owners."""
        return sum(_is_lookup(entry) for entry in self.entries)

    def forbidden_lookups(self) -> int:
        """Of those, the ones that no right covers."""
        return sum(_is_lookup(entry) and _code(entry) == 403 for entry in self.entries)

    def strays(self, namespaces: set[str]) -> Iterator[str]:
        """Requests for anything but what is watched, what the server has, and owners in these namespaces or in none."""
        for entry in self.entries:
            if not (_is_watched(entry) or _is_discovery(entry) or _is_lookup(entry, namespaces)):
                yield f"{entry['verb']} {entry['requestURI'][:200]} {_code(entry)}"


def requests(scratch: Path, account: str) -> Requests:
    """All requests of a ServiceAccount that have been answered, or whose answer has begun."""
    user = f"system:serviceaccount:{ACCOUNTS}:{account}"
    with log(scratch).open() as lines:
        entries = [json.loads(line) for line in lines]
    mine = [entry for entry in entries if entry["user"]["username"] == user]
    begun = {entry["auditID"]: entry for entry in mine}  # a watch has an entry for its beginning and one for its end
    return Requests(list(begun.values()))


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
    """A list, or a watch that goes on from somewhere and ends in time, as those of the aggregator do."""
    ours = entry["verb"] == "list" or all(
        name in entry["requestURI"] for name in ("resourceVersion=", "timeoutSeconds=")
    )
    return ours and entry["verb"] in ("list", "watch") and _path(entry) in WATCHED


def _is_discovery(entry: Json) -> bool:
    parts = _path(entry).strip("/").split("/")
    root = parts[0] == "apis" and len(parts) <= 3
    return entry["verb"] == "get" and (root or parts in (["api"], ["api", "v1"], ["version"]))


def _is_lookup(entry: Json, namespaces: set[str] | None = None) -> bool:
    """One object by its name, without a query and without a path below it."""
    reference = entry.get("objectRef", {})
    wanted = entry["verb"] == "get" and "name" in reference and "subresource" not in reference
    place = None if reference.get("resource") == "namespaces" else reference.get("namespace")
    here = namespaces is None or place is None or place in namespaces
    return wanted and here and "?" not in entry["requestURI"]
