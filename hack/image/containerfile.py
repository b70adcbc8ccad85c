"""Reads the image's runtime settings from the last stage of image/Containerfile."""

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Final

CONTAINERFILE: Final = Path(__file__).parents[2] / "image" / "Containerfile"


def settings(text: str) -> dict[str, object]:
    """The `config` section of the image."""
    found: dict[str, object] = {}
    variables: list[str] = []
    labels: dict[str, str] = {}
    for word, rest in _last_stage(text):
        match word:
            case "USER":
                found["User"] = rest
            case "WORKDIR":
                found["WorkingDir"] = rest
            case "ENTRYPOINT" | "CMD":
                found[word.capitalize()] = json.loads(rest)
            case "ENV":
                variables += shlex.split(rest)
            case "LABEL":
                labels |= dict(pair.split("=", 1) for pair in shlex.split(rest))
            case "COPY":
                pass  # the layers
            case _:
                raise ValueError(f"{word} in the last stage: the image that no engine makes would lack it")
    return found | {"Env": variables, "Labels": labels}


def _last_stage(text: str) -> Iterator[tuple[str, str]]:
    """The instructions after FROM, each as (keyword, rest of the line)."""
    *_, stage = text.split("\nFROM ")
    for line in stage.splitlines()[1:]:
        if line and not line.startswith("#"):
            word, _, rest = line.partition(" ")
            yield word, rest
