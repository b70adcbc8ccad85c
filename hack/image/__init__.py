"""Makes the container image without a container engine; image/Containerfile packs the same files with one.

The image holds Python as Debian packages it, the locked Python packages, gputally, and nothing else: no shell, no
compiler, no package manager. Each layer is a folder first, and the same sources make the same bytes.
"""
