"""The generated parts of the chart: packaged copies, README and version. See `hack.generate`.

Helm templates can read only files inside the chart, so dashboards are copied there. Templates cannot read the default
values either, so values.yaml is copied too.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

import yaml

from gputally import __version__

CHART: Final = "helm/gputally"
FILES: Final = f"{CHART}/files"
"""This folder contains only copies."""
VALUES: Final = f"{CHART}/values.yaml"
_COPIED: Final = {"dashboards/generated/": f"{FILES}/dashboards/"}
_DESCRIBED: Final = "# -- "
_ABOUT: Final = """\
<!-- Written by `make generate` from values.yaml: change that. -->
# Chart gputally

Exact GPU accounting for Kubernetes: an aggregator with its ledger, and an agent on each GPU node. Kubernetes 1.30 and
newer, Helm 3.

```console
$ helm install gputally helm/gputally --namespace gputally --create-namespace --set image.repository=IMAGE
```

[docs/install.md](../../docs/install.md) has clusters, sizes, upgrades and what goes wrong;
[docs/configuration.md](../../docs/configuration.md) has `configuration` and `priceBook`. Values that do not exist, and
values that cannot be right, are refused by `values.schema.json`.
"""


class Value(NamedTuple):
    """A documented chart value: path, default and meaning."""

    path: str
    default: object
    meaning: str

    @property
    def section(self) -> str:
        """The top-level key of a nested value; "" for a top-level value."""
        outermost, dot, _ = self.path.partition(".")
        return outermost if dot else ""


class Undescribed(Exception):
    """A chart value has no description."""


def copies(generated: Mapping[str, str], values: str) -> dict[str, str]:
    """The chart's copies of files in `generated` and of its own `values`."""
    found = {f"{FILES}/values.yaml": values}
    for name, content in generated.items():
        for source, target in _COPIED.items():
            if name.startswith(source):
                found[target + name.removeprefix(source)] = content
    return found


def with_version(page: str) -> str:
    """Chart.yaml with gputally's version as chart version and appVersion."""
    return re.sub(r"^(version|appVersion): .*$", rf"\1: {__version__}", page, flags=re.MULTILINE)


def readme(values: str) -> str:
    """The README, generated from the comments in values.yaml. Raises: Undescribed."""
    described = list(described_values(values))
    sections = dict.fromkeys(value.section for value in described)
    return _ABOUT + "".join(_table(section, described) for section in sections)


def described_values(values: str) -> Iterator[Value]:
    """All values in file order. Raises: Undescribed for a value without a description."""
    root = yaml.compose(values)
    assert isinstance(root, yaml.MappingNode)
    yield from _described(root, "", values.splitlines())


def _described(node: yaml.MappingNode, above: str, lines: list[str]) -> Iterator[Value]:
    for key, value in node.value:
        path = f"{above}{key.value}"
        meaning = _comment(lines, key.start_mark.line)
        below = list(_below(value, f"{path}.", lines))
        if not below and not meaning:
            raise Undescribed(f"{VALUES}: {path}: write what it is for, after `{_DESCRIBED}`")
        yield from below or [Value(path, yaml.safe_load(yaml.serialize(value)), meaning)]


def _below(value: yaml.Node, above: str, lines: list[str]) -> Iterator[Value]:
    """The values inside a mapping if any of them is described; otherwise the mapping is a single value."""
    if isinstance(value, yaml.MappingNode) and any(_comment(lines, key.start_mark.line) for key, _ in value.value):
        yield from _described(value, above, lines)


def _comment(lines: list[str], line: int) -> str:
    """The description on the line above `line`, or ""."""
    above = lines[line - 1].strip() if line else ""
    return above.removeprefix(_DESCRIBED) if above.startswith(_DESCRIBED) else ""


def _table(section: str, described: Iterable[Value]) -> str:
    rows = (
        f"| `{value.path}` | `{json.dumps(value.default)}` | {_cell(value.meaning)} |\n"
        for value in described
        if value.section == section
    )
    title = f"`{section}`" if section else "All objects"
    return f"\n## {title}\n\n| Value | Default | Meaning |\n| --- | --- | --- |\n" + "".join(rows)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
