"""Divide an integer into integer parts whose sum is the integer."""

from collections.abc import Sequence


def apportion(amount: int, weights: Sequence[int]) -> list[int]:
    """Divide `amount` in proportion to `weights` by largest remainder; among equal remainders, the first is rounded up.

    `weights` must not be negative, nor all 0.
    """
    total = sum(weights)
    divided = [amount * weight // total for weight in weights]
    remainder = amount - sum(divided)
    if remainder:
        order = sorted(range(len(weights)), key=lambda index: -(amount * weights[index] % total))
        for index in order[:remainder]:
            divided[index] += 1
    return divided
