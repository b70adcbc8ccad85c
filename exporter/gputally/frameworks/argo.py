"""Argo Workflows: each step of a workflow is a pod that works alone."""

from typing import Final

from gputally.frameworks.framework import Framework, JobLabel

ARGO: Final = Framework(jobs=(JobLabel("Workflow", "workflows.argoproj.io/workflow"),))
