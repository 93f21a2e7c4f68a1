# SPDX-License-Identifier: MIT
"""What each of our processes begins with: `python -I -X utf8 python/start.py MODULE ARGUMENT...`.

Isolated, every Python from 3.10 on takes nothing from the caller's folder and environment. Our own
folders come in here, since in PYTHONPATH a folder cannot have a colon in its name.
"""

from __future__ import annotations

import os
import runpy
import sys


def leave_the_callers_settings() -> None:
    """What libraries start with this Python finds no other modules and no other encoding than we do."""
    for name in [*os.environ]:
        if name.startswith("PYTHON") and not name.startswith("PYTHON_"):
            del os.environ[name]
    os.environ |= {"PYTHONUTF8": "1", "PYTHONSAFEPATH": "1"}


if __name__ == "__main__":
    script_folder = os.path.dirname(os.path.realpath(__file__))
    root = os.path.dirname(script_folder)
    sys.path[:0] = [script_folder, os.path.join(root, "sim", "python"), os.path.join(root, "tools")]
    leave_the_callers_settings()
    runpy.run_module(sys.argv.pop(1), run_name="__main__", alter_sys=True)
