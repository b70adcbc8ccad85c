"""Ready-made tier schemes: ordered tiers, the highest first, each fed by the PriorityClass of the same name."""

from collections.abc import Mapping
from typing import Final

PRIORITY_CLASS: Final = "priority-class"
"""Each PriorityClass is its own tier: what applies without a configuration."""

SERVING: Final[Mapping[str, tuple[str, ...]]] = {
    "inference-training": ("inference-critical", "inference-standard"),
    "four-tier": ("gpu-serving",),
    "three-tier": ("critical",),
    "research": (),
}
"""The tiers of each preset that serve user traffic; without one, names decide."""

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
    # Training over serving over batch over interactive, which preempts nobody: 1000, 800, 400, 200.
    "four-tier": ("gpu-training", "gpu-serving", "gpu-batch", "gpu-interactive"),
    # Production inference, scheduled training, and whatever runs on idle GPUs.
    "three-tier": ("critical", "normal", "scavenger"),
    # Many teams behind queues: 1000000, 100000, 10000, 1000; development preempts nobody.
    "research": ("production-retrain", "experiment-high", "experiment-normal", "development"),
}
