# SPDX-License-Identifier: MIT
"""Starts the command line for `python -m schedlab`, which the launcher calls."""

from schedlab.commands.cli import main

if __name__ == "__main__":
    main()
