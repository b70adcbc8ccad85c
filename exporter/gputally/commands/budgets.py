"""`gputally budgets` shows what is spent of each budget, and what is forecast."""

from argparse import ArgumentParser, Namespace
from typing import Final

from gputally.commands.in_pod import LEDGER, PLUGIN_HELP
from gputally.commands.output_flags import add_decimals_flag, add_output_flag
from gputally.process.settings import Setting, add_epilog, add_flags

_FILES: Final = (
    Setting("config.file", "", "FILE", "the configuration with the budgets (YAML)"),
    Setting("prices.file", "", "FILE", "price book (YAML); its currency is that of the amounts"),
)

_EXAMPLES: Final = f"""\
Works beside a running aggregator: it never blocks it and changes nothing. Each budget of the section `budgets` is shown
in its current period, up to the last time that the ledger is complete. The forecast comes from up to 28 past days, and
needs 3; its interval holds with a probability of 80 %. See docs/budgets.md.

{PLUGIN_HELP}
examples:
  gputally budgets --config.file config.yaml --prices.file prices.yaml --ledger gputally.db
  kubectl gputally budgets --output markdown
"""


def add_budgets_flags(command: ArgumentParser) -> None:
    """Add all flags, with examples."""
    command.set_defaults(run=_budgets)
    add_epilog(command, _EXAMPLES)
    add_flags(command, (LEDGER, *_FILES))
    add_output_flag(command)
    add_decimals_flag(command)


def _budgets(parsed: Namespace) -> int:
    from gputally.commands.from_ledger.budgets import show_budgets  # noqa: PLC0415 - for --help the flags suffice

    values = vars(parsed)
    files = values["config.file"], values["prices.file"]
    return show_budgets(parsed.ledger, *files, output=parsed.output, decimals=parsed.decimals)
