"""Preset tier schemes: tiers from highest to lowest, each selected by the PriorityClass of the same name."""

from collections.abc import Mapping
from typing import Final

PRIORITY_CLASS: Final = "priority-class"
"""Each PriorityClass is its own tier: the default without a configuration."""

SERVING: Final[Mapping[str, tuple[str, ...]]] = {
    "inference-training": ("inference-critical", "inference-standard"),
    "four-tier": ("gpu-serving",),
    "three-tier": ("critical",),
    "research": (),
}
"""The tiers of each preset that serve user traffic; without a preset, the tier names decide."""

PRESETS: Final[Mapping[str, tuple[str, ...]]] = {
    PRIORITY_CLASS: (),
    # Inference by day, training by night: priorities 10000, 5000, 1000, 500, 100.
    "inference-training": (
        "inference-critical",
        "inference-standard",
        "training-high",
        "training-standard",
        "training-low",
    ),
    # Training, serving, batch, then interactive, which never preempts: priorities 1000, 800, 400, 200.
    "four-tier": ("gpu-training", "gpu-serving", "gpu-batch", "gpu-interactive"),
    # Production inference, scheduled training, and whatever runs on idle GPUs.
    "three-tier": ("critical", "normal", "scavenger"),
    # Many teams with queues: priorities 1000000, 100000, 10000, 1000; development never preempts.
    "research": ("production-retrain", "experiment-high", "experiment-normal", "development"),
}
