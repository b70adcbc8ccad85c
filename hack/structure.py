"""Checks code size limits, and that exemptions have a reason: `python -m hack.structure`, part of `make verify`."""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import Final

ROOT: Final = Path(__file__).parents[1]
FOLDERS: Final = ("alerts", "dashboards", "exporter", "hack", "labs", "monitoring", "simulator", "tests")
FILE_LINES: Final = 500
FUNCTION_LINES: Final = 40
POSITIONAL: Final = 5
"""Maximum number of positional arguments; tests may have more, because pytest passes them by name."""
PRODUCT: Final = "exporter/gputally/"
SHAPELESS: Final = frozenset({"common.py", "helpers.py", "misc.py", "util.py", "utils.py"})
CORE: Final = tuple(f"exporter/gputally/{each}/" for each in ("model", "accounting", "metering", "catalog"))
IMPURE: Final = frozenset({"input", "now", "open", "print", "today", "utcnow"})
"""Calls that access the clock or I/O without an import that import-linter would detect."""
_EXEMPTION: Final = re.compile(
    r"#\s*(?P<what>noqa(?::\s*[A-Z]+[0-9]+(?:,\s*[A-Z]+[0-9]+)*)?|type:\s*ignore(?:\[[\w, -]+\])?)(?P<reason>.*)"
)

Function = ast.FunctionDef | ast.AsyncFunctionDef


def problems(path: str, source: str) -> Iterator[str]:
    """Violations in the file at `path` (relative to the root), each as `path:line: problem`."""
    lines = source.count("\n")
    if lines > FILE_LINES:
        yield f"{path}:1: {lines} lines, {FILE_LINES} at most; split it by subject"
    if Path(path).name in SHAPELESS:
        yield f"{path}:1: name the file after what is in it"
    tree = ast.parse(source)
    for function in functions(tree):
        yield from (f"{path}:{function.lineno}: {problem}" for problem in _function_problems(path, function))
    if path.startswith(CORE):
        yield from (f"{path}:{line}: the core may not call {name}()" for line, name in _impure_calls(tree))
    yield from (f"{path}:{line}: give the reason of '{what}'" for line, what in unexplained(source))


def repeated(sources: Mapping[str, str]) -> Iterator[str]:
    """Module and class names used more than once in the product."""
    places: dict[str, list[str]] = {}
    for path, source in sources.items():
        file = Path(path).name
        if not file.startswith("__"):
            places.setdefault(f"modules named {file}", []).append(path)
        for each in ast.parse(source).body:
            if isinstance(each, ast.ClassDef):
                places.setdefault(f"classes named {each.name}", []).append(path)
    yield from (f"{', '.join(paths)}: {what}" for what, paths in places.items() if len(paths) > 1)


def functions(tree: ast.AST) -> list[Function]:
    """All functions and methods, including nested ones."""
    return [node for node in ast.walk(tree) if isinstance(node, Function)]


def length(function: Function) -> int:
    """Lines from `def` to the end, without decorators."""
    return (function.end_lineno or function.lineno) - function.lineno + 1


def _function_problems(path: str, function: Function) -> Iterator[str]:
    if length(function) > FUNCTION_LINES:
        yield f"{function.name} has {length(function)} lines, {FUNCTION_LINES} at most"
    arguments = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    positional = [name for name in arguments if name not in ("self", "cls")]
    if len(positional) > POSITIONAL and not path.startswith(("labs/", "tests/")):
        yield f"{function.name} takes {len(positional)} arguments by position; make some keyword-only with `*`"


def _impure_calls(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = node.func
            name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
            if name in IMPURE:
                yield node.lineno, name


def unexplained(source: str) -> Iterator[tuple[int, str]]:
    """Exemptions without a reason, as (line, exemption); a reason also covers the same exemption on the next line."""
    explained: dict[int, str] = {}
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        match = _EXEMPTION.match(token.string) if token.type == tokenize.COMMENT else None
        if match is None:
            continue
        line, what = token.start[0], match["what"]
        if re.search(r"\w", match["reason"]) or explained.get(line - 1) == what:
            explained[line] = what
        else:
            yield line, what


def main() -> int:
    """Check every file; the last line of output reports function lengths."""
    found: list[str] = []
    lengths: list[int] = []
    product: dict[str, str] = {}
    for path in sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")):
        name, source = path.relative_to(ROOT).as_posix(), path.read_text()
        found += problems(name, source)
        if name.startswith(("exporter/", "simulator/")):
            lengths += map(length, functions(ast.parse(source)))
        if name.startswith(PRODUCT):
            product[name] = source
    found += repeated(product)
    print("\n".join(found))
    print(f"{len(lengths)} functions of {median(lengths):g} lines in the median, {max(lengths)} at most")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
