"""What a step of the accounting writes, as rows of the declared tables, whatever stores them.

Open `step.py` first. Allocations are missing: their texts, terms and prices get numbers from the storage.
"""
