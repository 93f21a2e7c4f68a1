# SPDX-License-Identifier: MIT
"""A fixed environment for tests and the programs that they start, independent of how the suite
runs.

Separate tests cover schedlab in other environments, which they create.
"""

from __future__ import annotations

import os
import re
import signal
import time

_KEPT_VARIABLES = re.compile(
    r"PATH|HOME|USER|LOGNAME|TMPDIR|LD_LIBRARY_PATH"  # paths and their owners
    r"|(?:XDG|SCHEDLAB|PYTEST|PIP|SSL|PLAYWRIGHT|NPM_CONFIG)_.*|(?:https?|all|no)_proxy"
    r"|NODE_EXTRA_CA_CERTS"  # without it npm fails behind a proxy with its own certificate
    r"|PYTHON(?:UTF8|SAFEPATH)",  # python/start.py sets both
    re.IGNORECASE,
)
_KNOWN = {"LC_ALL": "C.UTF-8", "TZ": "UTC"}


def settle(environment: dict[str, str]) -> None:
    """Sets this process's environment, signals and umask. `environment`: additional variables."""
    for name in [name for name in os.environ if not _KEPT_VARIABLES.fullmatch(name)]:
        del os.environ[name]
    os.environ |= {**_KNOWN, **environment}
    time.tzset()
    os.umask(0o022)
    _hear_signals()


def _hear_signals() -> None:
    """Resets ignored and blocked signals. The suite's parent may have some ignored (nohup:
    SIGHUP; a shell, for background jobs: SIGINT) or blocked, and programs inherit both.
    """
    signal.pthread_sigmask(signal.SIG_UNBLOCK, signal.valid_signals())
    for number in signal.valid_signals() - {signal.SIGPIPE, signal.SIGXFSZ}:  # Python's own
        if signal.getsignal(number) == signal.SIG_IGN:
            # A handler is not inherited, and the suite itself survives a hang-up.
            hung_up = number == signal.SIGHUP
            signal.signal(number, _pass_over if hung_up else signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _pass_over(_number: int, _frame: object) -> None:
    """Ignores a signal."""
