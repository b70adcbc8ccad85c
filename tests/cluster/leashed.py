"""Replaces itself by the given command, which is killed when its parent dies: `python leashed.py COMMAND...`.

A test run that is killed cannot clean up; on Linux the kernel then kills its servers.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1

if sys.platform == "linux":
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
os.execv(sys.argv[1], sys.argv[1:])
