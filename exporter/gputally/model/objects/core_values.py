"""Values that the API fixes. Source: k8s.io/api core/v1/types.go."""

from typing import Final

ENDED_PHASES: Final = ("Succeeded", "Failed")
"""Phases of pods whose containers run no more."""
PREEMPTS: Final = "PreemptLowerPriority"
"""The preemptionPolicy of pods and classes that name none."""
NEVER: Final = "Never"
"""The other preemptionPolicy."""
