# SPDX-License-Identifier: MIT
"""Tests the server of the playground's folder."""

import subprocess
import sys
from pathlib import Path

SERVE = """
import sys
from pathlib import Path
from schedlab.base.display.activity import startup_messages
from schedlab.monitor.standalone.serving import serve
with startup_messages("page"):
    serve(Path(sys.argv[1]), 0, False)
"""


def test_nothing_follows_the_address(tmp_path: Path) -> None:
    """The user works in the browser, so the terminal must not look as if work went on."""
    with subprocess.Popen(
        [sys.executable, "-c", SERVE, str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdout
        assert server.stderr
        try:
            assert server.stdout.readline().startswith("http://")
            server.wait(timeout=5)
        except subprocess.TimeoutExpired:
            pass
        finally:
            server.kill()
        messages = server.stderr.read().splitlines()
    assert messages[-1].endswith("Press Ctrl-C to end it.")
