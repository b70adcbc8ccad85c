"""The addresses of dashboards, which alerts and other dashboards link to."""


def uid(board: str) -> str:
    """Of the board of that name: stable, so that links and bookmarks outlive every change of the board."""
    return f"gputally-{board}"
