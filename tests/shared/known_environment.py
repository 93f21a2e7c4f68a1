# SPDX-License-Identifier: MIT
"""What tests and the programs that they start inherit: the same wherever and however the suite runs.

What schedlab does in other environments has tests of its own, which make those environments.
"""

from __future__ import annotations

import os
import re
import signal
import time

_KEPT = re.compile(
    r"PATH|HOME|USER|LOGNAME|TMPDIR|LD_LIBRARY_PATH"  # where things are, and whose
    r"|(?:XDG|SCHEDLAB|PYTEST|PIP|SSL|PLAYWRIGHT)_.*|(?:https?|all|no)_proxy"
    r"|PYTHON(?:UTF8|SAFEPATH)",  # python/start.py says both
    re.IGNORECASE,
)
_KNOWN = {"LC_ALL": "C.UTF-8", "TZ": "UTC"}


def settle(environment: dict[str, str]) -> None:
    """Makes this process's environment, signals and umask known. `environment`: what is added."""
    for name in [name for name in os.environ if not _KEPT.fullmatch(name)]:
        del os.environ[name]
    os.environ |= {**_KNOWN, **environment}
    time.tzset()
    os.umask(0o022)
    _hear_signals()


def _hear_signals() -> None:
    """Whoever starts the suite may have some ignored (nohup: SIGHUP; a shell, of what runs in the
    background: SIGINT) or blocked, and programs hand both on."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, signal.valid_signals())
    for number in signal.valid_signals() - {signal.SIGPIPE, signal.SIGXFSZ}:  # Python's own
        if signal.getsignal(number) == signal.SIG_IGN:
            # Of a handler nothing is handed on; and the suite itself goes on after a hang-up.
            hung_up = number == signal.SIGHUP
            signal.signal(number, _pass_over if hung_up else signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _pass_over(_number: int, _frame: object) -> None:
    """Does nothing."""
