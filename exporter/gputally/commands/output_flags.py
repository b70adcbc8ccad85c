"""The flags that say how an answer is written."""

from argparse import ArgumentParser

from gputally.formatting.formats import FORMATS


def add_output_flag(command: ArgumentParser) -> None:
    """Add --output, with all formats."""
    command.add_argument("--output", choices=FORMATS, default=FORMATS[0], help="[default: %(default)s]")


def add_decimals_flag(command: ArgumentParser) -> None:
    """Add --decimals."""
    help_text = "of amounts, 0 to 9 [default: 2; csv, json: 6]"
    command.add_argument("--decimals", type=int, choices=range(10), metavar="N", help=help_text)
