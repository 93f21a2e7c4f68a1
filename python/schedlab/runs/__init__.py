# SPDX-License-Identifier: MIT
"""From a plan to folders of runs, and back: what is to be run, how it is carried out, what is kept,
and how it is read again. It knows machines by their adapters, and no study."""
