"""Writes what the docs derive from the code: `make generate`; with `--check`, only says what is not current."""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from gputally.catalog.all import GROUPS
from gputally.catalog.document import document
from gputally.runtime import agent_settings, settings
from gputally.runtime.setting import Setting, variable

ROOT: Final = Path(__file__).parents[1]
BEGIN: Final = "<!-- begin: flags, written by `make generate` from gputally.runtime.{module} -->\n"
END: Final = "<!-- end: flags -->\n"


def metrics(_: str) -> str:
    """docs/metrics.md, all of it."""
    return document(GROUPS)


def with_flags(page: str, *, module: str, table: Iterable[Setting]) -> str:
    """The page with its table of flags as the settings are; ValueError without the marked place."""
    opening = BEGIN.format(module=module)
    before, begin, rest = page.partition(opening)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"the page needs the lines {opening.strip()} and {END.strip()}")
    return before + begin + flags(table) + end + after


def flags(table: Iterable[Setting]) -> str:
    """The settings as a table."""
    rows = (
        f"| `--{each.name} {each.metavar}` | `{variable(each.name)}` | {_default(each.default)} | {each.help} |\n"
        for each in table
    )
    return "| Flag | Environment | Default | Meaning |\n| --- | --- | --- | --- |\n" + "".join(rows)


def _default(text: str) -> str:
    return f"`{text}`" if text else ""


GENERATED: Final[Mapping[str, Callable[[str], str]]] = {
    "docs/metrics.md": metrics,
    "docs/configuration.md": partial(with_flags, module="settings", table=settings.SETTINGS),
    "docs/agent.md": partial(with_flags, module="agent_settings", table=agent_settings.SETTINGS),
}
"""Each generated file with the function that makes it anew of what it holds."""


def outdated(root: Path) -> dict[Path, str]:
    """The files that are not as they should be, with what they should hold."""
    found = {}
    for name, make in GENERATED.items():
        path = root / name
        present = path.read_text() if path.exists() else ""
        if (content := make(present)) != present:
            found[path] = content
    return found


def main(arguments: Sequence[str]) -> int:
    """Write what is outdated, or with `--check` name it and fail."""
    stale = outdated(ROOT)
    for path, content in stale.items():
        print(f"{path.relative_to(ROOT)}: {'not current; run make generate' if arguments else 'written'}")
        if not arguments:
            path.write_text(content)
    if not stale:
        print(f"{len(GENERATED)} files are current")
    return 1 if stale and arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
