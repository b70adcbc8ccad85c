"""Writes all generated files: `make generate`. With `--check` it only lists the outdated ones."""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from gputally.agent import agent_settings
from gputally.aggregator import settings
from gputally.catalog.reference import GROUPS, document
from gputally.process.settings import Setting, variable
from hack import chart, ledger_tables
from monitoring.chart_rules import chart_rules, defaults
from monitoring.config import ConfigInvalid, read
from monitoring.generate import generated, groups

ROOT: Final = Path(__file__).parents[1]
BEGIN: Final = "<!-- begin: {part}, written by `make generate` from {source} -->\n"
END: Final = "<!-- end: {part} -->\n"


def metrics(_: str) -> str:
    """The complete docs/metrics.md."""
    return document(GROUPS)


def with_flags(page: str, *, module: str, table: Iterable[Setting]) -> str:
    """The page with an updated table of flags; ValueError if the page lacks the markers."""
    return _with_part(page, "flags", source=module, text=flags(table))


def with_tables(page: str) -> str:
    """The page with an updated table of the ledger's tables; ValueError if the page lacks the markers."""
    return _with_part(page, "tables", source="gputally.ledger.tables", text=ledger_tables.document())


def _with_part(page: str, part: str, *, source: str, text: str) -> str:
    opening, closing = BEGIN.format(part=part, source=source), END.format(part=part)
    before, begin, rest = page.partition(opening)
    _, end, after = rest.partition(closing)
    if not (begin and end):
        raise ValueError(f"the page needs the lines {opening.strip()} and {closing.strip()}")
    return before + begin + text + end + after


def flags(table: Iterable[Setting]) -> str:
    """A Markdown table of the settings."""
    rows = (
        (f"`--{each.name} {_cell(each.metavar)}`", f"`{variable(each.name)}`", _default(each.default), each.help)
        for each in table
    )
    lines = "".join(f"| {' | '.join(row)} |\n" for row in rows)
    return "| Flag | Environment | Default | Meaning |\n| --- | --- | --- | --- |\n" + lines


def _cell(text: str) -> str:
    """Escape what would end a cell, also in code."""
    return text.replace("|", "\\|")


def _default(text: str) -> str:
    return f"`{text}`" if text else ""


GENERATED: Final[Mapping[str, Callable[[str], str]]] = {
    "docs/metrics.md": metrics,
    "docs/accounting.md": with_tables,
    "docs/configuration.md": partial(with_flags, module="gputally.aggregator.settings", table=settings.SETTINGS),
    "docs/agent.md": partial(with_flags, module="gputally.agent.agent_settings", table=agent_settings.SETTINGS),
    f"{chart.CHART}/Chart.yaml": chart.with_version,
}
"""Each generated page, with the function that renders it from its current content."""
FOLDERS: Final = ("alerts/generated", "dashboards/generated", chart.FILES)
"""These folders contain only generated files."""


def wanted(root: Path) -> dict[Path, str | None]:
    """The expected content of each generated file; None for a file to remove. Raises: ConfigInvalid."""
    files: dict[Path, str | None] = {path: None for folder in FOLDERS for path in _files(root / folder)}
    config, values = read(), _content(root / chart.VALUES) or ""
    monitoring = generated(config)
    made = {**monitoring, **chart.copies(monitoring, values), f"{chart.CHART}/README.md": chart.readme(values)}
    made |= {f"{chart.FILES}/rules/{name}.yaml": chart_rules(group, config) for name, group in groups().items()}
    made[f"{chart.FILES}/alerts.yaml"] = defaults(config)
    files |= {root / name: content for name, content in made.items()}
    return files | {root / name: make(_content(root / name) or "") for name, make in GENERATED.items()}


def outdated(root: Path) -> dict[Path, str | None]:
    """The files whose content differs from the expected content."""
    return {path: content for path, content in wanted(root).items() if content != _content(path)}


def _files(folder: Path) -> Iterable[Path]:
    return (path for path in folder.rglob("*") if path.is_file())


def _content(path: Path) -> str | None:
    return path.read_text() if path.exists() else None


def _write_or_remove(path: Path, content: str | None) -> str:
    if content is None:
        path.unlink()
        return "removed"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    return "written"


def main(arguments: Sequence[str], root: Path = ROOT) -> int:
    """Write outdated files and remove obsolete ones; with `--check`, list them and return 1."""
    try:
        stale = outdated(root)
    except ConfigInvalid as problem:
        print(problem)
        return 1
    for path, content in stale.items():
        result = "not current; run make generate" if arguments else _write_or_remove(path, content)
        print(f"{path.relative_to(root)}: {result}")
    if not stale:
        print(f"{len(wanted(root))} files are current")
    return 1 if stale and arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
