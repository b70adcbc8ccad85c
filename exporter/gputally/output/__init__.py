"""Answers as people and programs read them: one module for each answer, with all of its formats."""
