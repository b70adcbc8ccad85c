"""Values of filters that nothing has, so that an empty list is not mistaken for the answer to a misspelt name."""

from collections.abc import Collection, Mapping


def unknown_values(filters: Mapping[str, Collection[str]], known: Mapping[str, Collection[str]]) -> list[str]:
    """The values of `filters` that are not among the `known` ones of the same name, such as `tenant visoin`.

    Filters without known values are not checked.
    """
    return [f"{name} {each}" for name, values in known.items() for each in sorted({*filters.get(name, ())} - {*values})]
