"""Pods that are watched for another reason than their GPUs, and pods whose GPUs no rule weighs."""
