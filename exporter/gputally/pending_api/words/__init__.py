"""Verdicts, amounts and suggestions in words."""
