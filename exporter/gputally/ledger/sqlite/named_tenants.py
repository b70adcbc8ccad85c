"""Which tenants have records with a name, at any time: of others, a filter is misspelt or not the reader's."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from gputally.ledger.sqlite.rows import Row

_OF_TERMS: Final = ("tier", "tenant", "queue", "gpu_model", "pool", "resource")
_OF_REVISIONS: Final = ("job_kind", "job", "node")
_DISRUPTED: Final = {
    "tier": "victim_tier",
    "tenant": "victim_tenant",
    "namespace": "victim_namespace",
    "pod": "victim_name",
    **{each: each for each in _OF_REVISIONS},
}
_WAITED: Final = {
    **{each: each for each in ("tier", "tenant", "namespace", "occupying_tier")},
    "pod": "name",
}
_LACKED: Final = {each: each for each in ("tier", "tenant", "namespace", "job_kind", "job")}
NAMED: Final = tuple(dict.fromkeys((*_OF_TERMS, "namespace", "pod", *_OF_REVISIONS, *_WAITED)))
"""The columns whose names can be looked up."""


def tenants_named(rows: Callable[[str, Mapping[str, Any]], list[Row]], column: str, glob: str) -> set[str]:
    """The tenants of all records in which `column`, one of NAMED, matches the glob."""
    statement = " UNION ".join(_sources(column))
    return {tenant for (tenant,) in rows(statement, {"glob": glob.replace("[!", "[^")})}


def _sources(column: str) -> list[str]:
    """The queries of all tables with that column; all names in them are literals."""
    sources = [
        f"SELECT {tenant} FROM {table} WHERE {columns[column]} GLOB :glob"  # noqa: S608 (literals only)
        for table, tenant, columns in (
            ("disruptions", "victim_tenant", _DISRUPTED),
            ("waits", "tenant", _WAITED),
            ("uncreated_waits", "tenant", _LACKED),
        )
        if column in columns
    ]
    if column in _OF_TERMS:
        sources.append(f"SELECT tenant FROM terms WHERE {column} GLOB :glob")  # noqa: S608 (literals only)
    elif column in _OF_REVISIONS or column in ("namespace", "pod"):
        sources += _of_pods(column)
    return sources


def _of_pods(column: str) -> list[str]:
    table, pod = ("pod_revisions", "pod") if column in _OF_REVISIONS else ("pods", "id")
    name = "name" if column == "pod" else f"{column}_text"
    matches = "GLOB :glob" if column == "pod" else "IN (SELECT id FROM texts WHERE text GLOB :glob)"
    segments = "pod_segments s JOIN terms t ON t.id = s.terms"
    found = [
        f"SELECT t.tenant FROM {segments} JOIN {table} p ON p.{pod} = s.pod WHERE p.{name} {matches}",  # noqa: S608 (literals only)
    ]
    if column != "pod":
        found.append(f"SELECT tenant FROM daily_allocations WHERE {column} GLOB :glob")  # noqa: S608 (literals only)
    return found
