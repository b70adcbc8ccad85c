"""`gputally check` validates configurations and price books without applying them, and reports all problems."""

import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from pathlib import Path
from typing import Final

from gputally.model.printable import printable

_EXAMPLES: Final = """\
examples:
  gputally check config.yaml prices.yaml
  helm template . --show-only templates/files.yaml | yq '.data["config.yaml"]' | gputally check -
  gputally check --output json *.yaml | jq '.problems[] | .file + ": " + .text'

Price books are also checked against the tiers of a configuration that is named beside them.
"""


def add_check_flags(command: ArgumentParser) -> None:
    """Add all flags, with examples."""
    command.set_defaults(run=_check)
    command.epilog, command.formatter_class = _EXAMPLES, RawDescriptionHelpFormatter
    add = command.add_argument
    add("--output", choices=("text", "json"), default="text", help="json prints one document [default: text]")
    add("files", nargs="+", type=Path, metavar="FILE", help="a Configuration or PriceBook (YAML); - is standard input")


def _check(parsed: Namespace) -> int:
    """Report all problems of the files."""
    from gputally.config.read import check, document_of  # noqa: PLC0415 - YAML, which --help needs not

    problems = check(parsed.files)
    count = len(parsed.files)
    if parsed.output == "json":
        sys.stdout.write(document_of(problems, files=count))
        return 2 if problems else 0
    for problem in problems:
        sys.stderr.write(f"{printable(str(problem))}\n")
    if not problems:
        sys.stdout.write(f"{count} file{'s' if count > 1 else ''} checked, no problems\n")
    return 2 if problems else 0
