"""Tekton: each task of a pipeline is a pod that works alone."""

from typing import Final

from gputally.frameworks.framework import Framework, JobLabel

TEKTON: Final = Framework(jobs=(JobLabel("PipelineRun", "tekton.dev/pipelineRun"),))
