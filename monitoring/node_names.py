"""Names of nodes in the description of an alert."""

from typing import Final

_SHOWN: Final = 10


def node_names(query: str, arguments: str, *, before: str, after: str = "") -> str:
    """The nodes of a query's result by their label `node`, between `before` and `after`; nothing without a result.

    `arguments` are those of the query's `%q`. Of more than ten nodes, the rest are "and more".
    """
    name = "{{ if $index }}, {{ end }}{{ $node.Labels.node }}"
    return (
        f'{{{{ with printf "{query}" {arguments} | query | sortByLabel "node" }}}}{before}'
        f"{{{{ range $index, $node := . }}}}{{{{ if lt $index {_SHOWN} }}}}{name}"
        f"{{{{ else if eq $index {_SHOWN} }}}} and more{{{{ end }}}}{{{{ end }}}}{after}{{{{ end }}}}"
    )
