# SPDX-License-Identifier: MIT
"""Tests `./schedlab mcp` with a client that knows only the protocol: lines of JSON."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from built_once import build_once
from conftest import ROOT
from schedlab.courses.submissions import sandbox, wasm_policy

pytestmark = pytest.mark.xdist_group("grading")

RR = (ROOT / "policies" / "rr.c").read_text()
PICK = "task_t *rr_pick(run_queue_t *queue, uint32_t cpu)\n{\n"


class Client:
    """A client as a language model would use it."""

    def __init__(self, folder: Path) -> None:
        trust = ["--trust"] if sandbox.missing_requirement() else []
        self.process = subprocess.Popen(
            [ROOT / "schedlab", "mcp", folder, *trust],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.request_count = 0
        answer = self.ask(
            "initialize",
            protocolVersion="2025-06-18",
            capabilities={},
            clientInfo={"name": "script", "version": "1"},
        )
        assert answer["serverInfo"]["name"] == "schedlab"
        self.send({"method": "notifications/initialized"})

    def send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.process.stdin.flush()

    def ask(self, method: str, **given: Any) -> Any:
        self.request_count += 1
        self.send({"id": self.request_count, "method": method, "params": given})
        assert self.process.stdout
        while line := self.process.stdout.readline():
            answer = json.loads(line)
            if answer.get("id") == self.request_count:
                return answer["result"]
        raise EOFError

    def send_call(self, tool: str, **given: Any) -> None:
        """Sends a call without awaiting the answer."""
        self.request_count += 1
        params = {"name": tool, "arguments": given}
        self.send({"id": self.request_count, "method": "tools/call", "params": params})

    def call(self, tool: str, **given: Any) -> tuple[bool, str]:
        """Returns whether a call succeeded, and its result."""
        answer = self.ask("tools/call", name=tool, arguments=given)
        return not answer.get("isError"), "\n".join(part["text"] for part in answer["content"])


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    build_once(str(wasm_policy.SIMULATOR_LIBRARY.relative_to(ROOT)))
    started = Client(tmp_path)
    yield started
    assert started.process.stdin
    started.process.stdin.close()
    assert started.process.wait(30) == 0


def test_a_policy_is_written_checked_run_and_explained(client: Client, tmp_path: Path) -> None:
    tools = {tool["name"]: tool for tool in client.ask("tools/list")["tools"]}
    assert {"read_interface", "score_policy", "import_recording", "what_if"} < set(tools)
    assert tools["run_policy"]["inputSchema"]["required"] == ["name", "workload"]
    good, text = client.call("read_interface")
    assert good
    assert "POLICY_DEFINITION" in text
    assert client.call("read_policy", name="rr") == (True, RR)

    wrong = RR.replace(PICK, PICK + "    for (volatile int i = 0; i < 2;) {}\n", 1)
    assert client.call("write_policy", name="mine", source=wrong)[0]
    good, text = client.call("check_policy", name="mine")
    assert good
    assert "does not end within" in text
    assert "in rr_pick()" in text
    output = json.loads(client.call("score_policy", name="mine")[1])
    assert (output["score"], output["failed_at"]) == (None, "laws")
    assert client.call("write_policy", name="mine", source=RR)[0]
    assert client.call("check_policy", name="mine")[1] == "mine compiles, and breaks no rule"

    good, text = client.call("explain_waits", run="mine-mixed-1cpu-seed1")
    assert not good
    assert "does not exist; use run_policy first" in text
    good, text = client.call("run_policy", name="mine", workload="mixed")
    assert good, text
    output = json.loads(text)
    assert output["summary"]["selections"] > 2
    good, text = client.call("explain_waits", run=output["run"], worst=1)
    assert good, text
    assert len(json.loads(text)["longest"]) == 1

    for tool, given, words in (
        ("read_policy", {"name": "../policies/rr"}, "not a valid name"),
        ("write_policy", {"name": "rr", "source": RR}, "is a built-in policy"),
        (
            "run_policy",
            {"name": "mine", "workload": "/etc/passwd"},
            "workload /etc/passwd: does not exist",
        ),
        ("explain_waits", {"run": ".."}, "run ..: does not exist"),
    ):
        good, text = client.call(tool, **given)
        assert not good
        assert words in text
    names = [f"many-{number}" for number in range(16)]
    for name in names:  # no call waits for the previous answer
        client.send_call("write_policy", name=name, source=RR)
    for name in names:
        good, text = client.call("write_policy", name=name, source=RR)
        assert good, text
    (tmp_path / "theirs.c").write_text("/* written by hand */\n")
    good, text = client.call("write_policy", name="theirs", source=RR)
    assert not good
    assert "not replaced" in text
    assert (tmp_path / "theirs.c").read_text() == "/* written by hand */\n"
