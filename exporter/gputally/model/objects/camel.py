"""The base of Kubernetes objects."""

from msgspec import Struct


class Camel(Struct, rename="camel", frozen=True, gc=False):
    """Python names here, the API's camelCase on the wire; a decoded tree has no cycles for the garbage collector."""
