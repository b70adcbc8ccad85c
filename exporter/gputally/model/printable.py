"""Text of others, such as names from an API or a file, as it may be printed."""


def printable(text: str) -> str:
    r"""`text` without control characters and whatever else Unicode calls not printable: it must not control a terminal.

    Line breaks, overrides of the direction of text, and bytes that are not UTF-8 are shown as in `\u202e`.
    """
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)
