"""Dividing a whole number so that the parts add up to it."""

from collections.abc import Sequence


def apportion(amount: int, weights: Sequence[int]) -> list[int]:
    """`amount` in proportion to `weights`, none negative and not all 0; of equal remainders the first is rounded up."""
    total = sum(weights)
    divided = [amount * weight // total for weight in weights]
    left = amount - sum(divided)
    if left:
        order = sorted(range(len(weights)), key=lambda index: -(amount * weights[index] % total))
        for index in order[:left]:
            divided[index] += 1
    return divided
