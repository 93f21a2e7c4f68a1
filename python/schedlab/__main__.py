# SPDX-License-Identifier: MIT
"""`python -m schedlab`: what the launcher hands over to."""

from schedlab.commands.cli import main

if __name__ == "__main__":
    main()
