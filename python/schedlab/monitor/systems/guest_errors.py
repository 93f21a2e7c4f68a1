# SPDX-License-Identifier: MIT
"""Error messages of the schedlab kernel, by the numbers of abi/errors.h."""

from __future__ import annotations

from schedlab.monitor.system import Refused

EPERM = 1
ENOENT = 2
ESRCH = 3
EINVAL = 22
ERANGE = 34
EPOLICY = 160
ETUNABLE = 161

_ERROR_TEXTS = {
    EPERM: "it is not permitted",
    ENOENT: "there is no such file",
    ESRCH: "there is no such process",
    4: "the control program was interrupted",
    5: "its disk failed",
    7: "there are too many arguments",
    8: "the file is not a program of this machine",
    11: "its process table is full; end a process first",
    12: "it is out of memory; end a process first",
    EINVAL: "invalid argument",
    24: "the control program has too many open files",
    28: "its disk is full",
    ERANGE: "the value is out of range",
    36: "a name is too long",
    38: "it has no such system call",
    EPOLICY: "it has no such policy or preset",
    ETUNABLE: "its policy has no such tunable",
}


class GuestError(Refused):
    """The guest rejected a command; `number` is an error number of abi/errors.h."""

    def __init__(self, action: str, number: int, words: str = "") -> None:
        self.number = number
        self.words = _ERROR_TEXTS.get(number) or words or f"error {number}"
        super().__init__(self.words, what=action)
        self.args = (action, number, words)  # pickle passes these to the constructor
