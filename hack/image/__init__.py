"""Builds the container image without a container engine; image/Containerfile packages the same files with one.

The image contains only Debian's Python, the locked Python packages and gputally: no shell, compiler or package
manager. Each layer is built as a folder first. Builds are reproducible byte for byte.
"""
