# SPDX-License-Identifier: MIT
"""A server of the live monitor that plays made-up systems, for tests of the page: consistent frames
of two systems, which obey what they are asked; all that was asked is kept.

    python tests/monitor/monitor_stand_in.py [PROCESSES [SYSTEMS [PORT]]]      # to look at the page by hand
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import threading
from collections import deque
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import orjson
from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets
from tornado.web import Application, RequestHandler, StaticFileHandler
from tornado.websocket import WebSocketClosedError, WebSocketHandler

from schedlab.base.toolchain.policies import read_catalogue
from schedlab.monitor.files import PAGE, POLICY
from schedlab.monitor.server import SHARED_FILES
from schedlab.monitor.vega import vega_script
from schedlab.report.html import TEMPLATES
from schedlab.workload import palette

TOKEN = "made-up"
WAY = Path(__file__).with_name("monitor_frames_way.js")
TICK = 10_000_000
ABILITIES = ("policy", "attributes", "start", "pause", "pace", "seek", "setup")


@dataclass
class Process:
    """A made-up process: it computes, or computes and sleeps in turn."""

    pid: int
    name: str
    group: str
    burst: int
    """Of computing between two sleeps; 0: it never sleeps."""
    own: bool = False
    priority: int = 5
    tickets: int = 10
    weight: int = 1
    nice: int = 0
    level: int = 0
    state: int = 0
    until: int = 0
    """When it wakes."""
    left: int = 0
    """Of its burst."""
    cpu: int = -1
    run: int = 0
    waiting: int = 0
    since: int = 0
    """It waits, or runs."""
    selections: int = 0
    before: int = 0
    """Its run time a window ago."""


class MadeUpSystem:
    """Some CPUs that pick by lot, or by levels, every 10 ms."""

    def __init__(self, system: str, policy: str, processes: int, cpus: int = 2) -> None:
        self.system, self.policy = system, policy
        self.random = random.Random(f"{system} {policy}")
        self.life, self.message = "running", ""
        self.paused, self.pace = False, 1.0
        self.changed: dict[str, int] = {}
        self.recording = ""
        self.setup: dict[str, Any] = {"machine": "sim", "policy": policy, "seed": 1, "cpus": cpus}
        self.setup |= {
            "tick_ns": TICK,
            "workloads": ["two-hogs"],
            "settings": {},
            "files": [],
            "title": "",
            "ignore_limits": False,
        }
        self.setup |= {"memory_mib": 512, "costs": "kernel", "source": None}
        self.begin(processes, cpus)

    def begin(self, processes: int, cpus: int) -> None:
        self.now = 0
        self.number = 0
        self.made = 0
        self.decisions_made = 0
        self.processes: dict[int, Process] = {}
        self.running: list[Process | None] = [None] * cpus
        self.queue: deque[Process] = deque()
        self.runs: deque[tuple[int, int, int, int, int, int, int]] = deque(maxlen=4000)
        self.marks: deque[dict[str, Any]] = deque(maxlen=200)
        self.decisions: deque[dict[str, Any]] = deque(maxlen=200)
        self.log: deque[str] = deque(maxlen=2000)
        self.fresh: dict[str, list[Any]] = {}
        self.was_sought = False
        self.new_frame()
        self.say("schedlab kernel: 2 CPUs, 512 MiB, a console")
        self.fork("init", "init", 5_000_000)
        self.fork("steer", "steer", 1_000_000, own=True)
        for name, tickets, burst in (
            ("hog", 30, 0),
            ("hog", 20, 0),
            ("hog", 10, 0),
            ("interactive", 10, 2_000_000),
            ("compile", 15, 60_000_000),
        ):
            self.fork(name, "five", burst, tickets=tickets)
        for number in range(max(0, processes - len(self.processes))):
            self.fork(f"worker-{number % 40}", f"team-{number % 9}", (number % 5) * 3_000_000)

    # --- what happens

    def new_frame(self) -> None:
        self.fresh = {"runs": [], "marks": [], "decisions": [], "log": []}

    def say(self, line: str) -> None:
        self.log.append(line)
        self.fresh["log"].append(line)

    def mark(self, kind: str, text: str, pid: int = 0) -> None:
        mark = {"time_ns": self.now, "kind": kind, "text": text, "pid": pid}
        self.marks.append(mark)
        self.fresh["marks"].append(mark)

    def fork(self, name: str, group: str, burst: int, **more: Any) -> Process:
        self.made += 1
        process = Process(self.made, name, group, burst, left=burst, since=self.now, **more)
        self.processes[process.pid] = process
        self.queue.append(process)
        return process

    def advance(self, duration: int) -> None:
        for _ in range(duration // TICK):
            self.wake()
            for cpu in range(len(self.running)):
                self.decide(cpu)
            self.now += TICK
            self.run_tick()

    def wake(self) -> None:
        for process in self.processes.values():
            if process.state == 2 and process.until <= self.now:
                process.state, process.since, process.left = 0, self.now, process.burst
                self.queue.append(process)

    def decide(self, cpu: int) -> None:
        if self.running[cpu] is not None or not self.queue:
            return
        waited = list(self.queue)[:64]
        if "lottery" in self.policy:
            drawn = self.random.randrange(sum(each.tickets for each in waited))
            chosen, passed = waited[0], 0
            for chosen in waited:
                passed += chosen.tickets
                if passed > drawn:
                    break
            text = f"ticket {drawn} of {sum(each.tickets for each in waited)} was drawn"
        else:
            chosen = min(waited, key=lambda each: each.level)
            drawn, text = chosen.level, f"the first of level {chosen.level}"
        self.queue.remove(chosen)
        chosen.state, chosen.cpu = 1, cpu
        chosen.waiting += self.now - chosen.since
        chosen.since = self.now
        chosen.selections += 1
        self.running[cpu] = chosen
        self.note_decision(cpu, chosen, waited, drawn, text)

    def note_decision(
        self, cpu: int, chosen: Process, waited: list[Process], remark: int, text: str
    ) -> None:
        self.decisions_made += 1
        has_levels = "mlfq" in self.policy
        decision = {
            "number": self.decisions_made,
            "time_ns": self.now,
            "cpu": cpu,
            "pid": chosen.pid,
            "name": chosen.name,
            "waited": len(self.queue),
            "remark": remark,
            "text": text,
            "candidates": [
                (each.pid, each.level if has_levels else each.tickets)
                for each in waited[:16]
                if each is not chosen
            ],
        }
        self.decisions.append(decision)
        self.fresh["decisions"].append(decision)

    def run_tick(self) -> None:
        for cpu, process in enumerate(self.running):
            if process is None:
                continue
            process.run += TICK
            process.left -= TICK
            how = 2
            if process.burst and process.left <= 0:
                how, process.state = 1, 2
                process.until = self.now + self.random.randrange(10_000_000, 90_000_000)
                process.level = max(0, process.level - 1)
            else:
                process.state = 0
                process.level = (
                    min(3, process.level + 1) if process.selections % 4 == 0 else process.level
                )
                self.queue.append(process)
            begin, process.since = process.since, self.now
            level = process.level if "mlfq" in self.policy else -1
            self.fresh["runs"].append((cpu, process.pid, begin, self.now, level, how, 0))
            self.runs.append(self.fresh["runs"][-1])
            self.running[cpu] = None

    def seek(self, time_ns: int) -> None:
        """What was decided later has not been."""
        self.now, self.was_sought = time_ns, True
        while self.decisions and self.decisions[-1]["time_ns"] > time_ns:
            self.decisions.pop()
            self.decisions_made -= 1

    # --- frames

    def frame(self) -> dict[str, Any]:
        self.number += 1
        fresh = self.fresh
        result = self.history() | {"whole": True} if self.was_sought else self.whole(fresh)
        self.was_sought = False
        self.new_frame()
        assert fresh is not self.fresh
        return result

    def history(self) -> dict[str, Any]:
        return self.whole(
            {
                "runs": list(self.runs),
                "marks": list(self.marks),
                "decisions": list(self.decisions),
                "log": list(self.log),
            }
        )

    def whole(self, happened: dict[str, list[Any]]) -> dict[str, Any]:
        everyone = list(self.processes.values())
        total = sum(each.run for each in everyone if not each.own) or 1
        tickets = sum(each.tickets for each in everyone if not each.own) or 1
        levels = "mlfq" in self.policy
        return {
            "type": "frame",
            "system": self.system,
            "number": self.number,
            "now_ns": self.now,
            "life": "paused" if self.paused else self.life,
            "message": self.message,
            "paused": self.paused,
            "speed": 0.0 if self.paused else self.pace or 40.0,
            "pace": self.pace,
            "policy": self.policy,
            "shares_by": "tickets" if "lottery" in self.policy else "equal",
            "levels": levels,
            "levels_rise": levels,
            "shared_queue": False,
            "cpus": [self.cpu(cpu) for cpu in range(len(self.running))],
            "processes": self.columns(everyone, total, tickets),
            "metrics": self.metrics(),
            "cost": {
                "steering": 0.011,
                "tracing": 0.0063 + self.number % 5 / 2000,
                "total": 0.0173,
            },
            "timeline": {"runs": happened["runs"], "idle_while_queued": [], "thinned": 0},
            "marks": happened["marks"],
            "decisions": happened["decisions"],
            "log": happened["log"],
            "events_per_s": 4100.0 + self.number % 7 * 100,
            "events": self.now // 50_000,
            "lost": 0,
            "behind_ns": 0,
            "back_ns": 0,
            "whole": False,
            "skipped_frames": 0,
            "recording": self.recording,
        }

    def cpu(self, cpu: int) -> dict[str, Any]:
        mine = list(self.queue)[cpu :: len(self.running)][:200]
        last = next((run for run in reversed(self.runs) if run[0] == cpu), None)
        level = last[4] if last else -1
        return {
            "running": last[1] if last else 0,
            "since_ns": last[2] if last else 0,
            "level": level,
            "queue": [(each.pid, each.level if level >= 0 else -1, each.since) for each in mine],
            "busy": 0.97,
        }

    def columns(self, everyone: list[Process], total: int, tickets: int) -> dict[str, list[Any]]:
        waits = [self.now - each.since if each.state == 0 else 0 for each in everyone]
        return {
            "pid": [each.pid for each in everyone],
            "parent": [min(1, each.pid - 1) for each in everyone],
            "name": [each.name for each in everyone],
            "state": [each.state for each in everyone],
            "reason": [int(each.state == 2) for each in everyone],
            "cpu": [each.cpu for each in everyone],
            "group": [each.group for each in everyone],
            "own": [each.own for each in everyone],
            "priority": [each.priority for each in everyone],
            "tickets": [each.tickets for each in everyone],
            "weight": [each.weight for each in everyone],
            "nice": [each.nice for each in everyone],
            "level": [each.level for each in everyone],
            "slice_left_ns": [TICK if each.state == 1 else -1 for each in everyone],
            "run_ns": [each.run for each in everyone],
            "waiting_ns": [each.waiting + now for each, now in zip(everyone, waits, strict=True)],
            "wait_now_ns": waits,
            "selections": [each.selections for each in everyone],
            "share": [0.0 if each.own else each.run / total for each in everyone],
            "ideal": [-1.0 if each.own else each.tickets / tickets for each in everyone],
        }

    def metrics(self) -> dict[str, Any]:
        wave = self.number % 10
        return {
            "window_ns": 10_000_000_000,
            "turnaround_ns": None,
            "response_ns": 12_500_000.0 + 1e5 * wave,
            "waiting_ns": None,
            "wakeup_median_ns": 4_200_000.0 + 1e5 * wave,
            "wakeup_p99_ns": 21_000_000.0,
            "wakeup_maximum_ns": 38_000_000.0,
            "wakeups": 40 + wave,
            "finished": 0,
            "throughput_per_s": 1.5 + wave / 10,
            "fairness": 0.93,
            "fairness_turnaround": None,
            "overhead": 0.004,
            "utilisation": 0.97,
            "switches_per_s": 201.0,
            "migrations_per_s": 2.0,
            "idle_while_queued_ns": 0,
        }


class RefusedHere(Exception):
    """What a made-up system does not do."""


@dataclass
class StandIn:
    """The server, in a thread of its own while it is entered."""

    processes: int = 12
    systems: int = 2
    port: int = 0
    asked: list[dict[str, Any]] = field(default_factory=list)
    """All messages that came, without the calls for history."""
    refusals: dict[str, str] = field(default_factory=dict)
    """What is not done, and the words for it: such as {"policy": "the kernel said no"}."""
    playing: bool = True
    """Frames are sent."""
    abilities: tuple[str, ...] = ABILITIES
    no_branches: str = ""
    no_blame: str = ""
    end_ns: int | None = None
    """As of a recording."""
    lesson: dict[str, Any] | None = None
    sockets: set[_Socket] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.policies = read_catalogue()
        self.made = [
            MadeUpSystem(name, policy, self.processes, cpus)
            for name, policy, cpus in (("a", "mlfq", 2), ("b", "lottery", 4))[: self.systems]
        ]

    def __enter__(self) -> StandIn:
        started = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self.serve(started)))
        self._thread.start()
        assert started.wait(20)
        return self

    def __exit__(self, *_: object) -> None:
        self.call(self._done.set)
        self._thread.join(20)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/?token={TOKEN}"

    def call(self, act: Any) -> None:
        """In the server's loop."""
        self._loop.call_soon_threadsafe(act)

    def drop(self) -> None:
        """The connections are lost."""
        self.call(self.close_all)

    def close_all(self) -> None:
        for each in list(self.sockets):
            each.close()

    def asked_to(self, act: str) -> list[dict[str, Any]]:
        """What came of this kind, without numbers."""
        found = [each for each in self.asked if each["do"] == act]
        return [
            {key: value for key, value in each.items() if key not in ("id", "do")} for each in found
        ]

    async def serve(self, started: threading.Event) -> None:
        self._loop, self._done = asyncio.get_running_loop(), asyncio.Event()
        sockets = bind_sockets(self.port, "127.0.0.1")
        self.port = sockets[0].getsockname()[1]
        server = HTTPServer(self.application())
        server.add_sockets(sockets)
        started.set()
        while not self._done.is_set():
            if self.playing:
                self.send_frames()
            await asyncio.sleep(0.2)
        for each in list(self.sockets):
            each.close()
        server.stop()
        await server.close_all_connections()

    def application(self) -> Application:
        files = {"path": str(PAGE), "default_filename": "index.html"}
        return Application(
            [
                (r"/socket", _Socket, {"stand_in": self}),
                (r"/vega\.js", _Vega),
                (r"/way\.js", _Way),
                (SHARED_FILES, _File, {"path": str(TEMPLATES)}),
                (r"/(.*)", _File, files),
            ]
        )

    def send_frames(self) -> None:
        for made in self.made:
            if not made.paused and made.life == "running":
                made.advance(int(200_000_000 * (made.pace or 10)))
            if self.sockets:
                text = orjson.dumps(made.frame())
                for each in self.sockets:
                    each.offer(made.system, text)

    # --- what is asked

    def hello(self) -> dict[str, Any]:
        systems = [
            {
                "system": made.system,
                "title": f"Simulator {made.system}, {len(made.running)} CPUs",
                "machine": "sim",
                "cpus": len(made.running),
                "tick_ns": TICK,
                "repeatable": True,
                "no_branches": self.no_branches,
                "no_blame": self.no_blame,
                "end_ns": self.end_ns,
                "abilities": self.abilities,
                "setup": made.setup,
            }
            for made in self.made
        ]
        entries = palette.palette()
        return {
            "type": "hello",
            "version": "1.0",
            "systems": systems,
            "policies": [asdict(policy) for policy in self.policies.values()],
            "palette": [
                {"name": e.name, "title": e.title, "kind": e.kind} for e in entries.values()
            ],
            "window_ns": 10_000_000_000,
            "lesson": self.lesson,
            "cpus_max": {"sim": 64, "qemu": 8},
        }

    def greet(self) -> None:
        for each in self.sockets:
            each.write_message(json.dumps(self.hello()))

    def answer(self, message: dict[str, Any]) -> dict[str, Any]:
        act = message["do"]
        if act != "history":
            self.asked.append(message)
        try:
            if act in self.refusals:
                raise RefusedHere(self.refusals[act])
            wanted = message.get("system", "*")
            made = [each for each in self.made if wanted in ("*", each.system)]
            results = {each.system: getattr(self, f"do_{act}")(each, message) for each in made}
            together = act in ("pace", "step", "window", "report")
            result = results[made[0].system] if len(made) == 1 or together else results
            return {"type": "answer", "id": message["id"], "ok": True, "result": result}
        except RefusedHere as refused:
            return {"type": "answer", "id": message["id"], "ok": False, "error": str(refused)}

    def do_policy(self, made: MadeUpSystem, message: dict[str, Any]) -> None:
        made.policy, made.changed = message["policy"], {}
        made.mark("policy", f"policy {made.policy}")
        made.say(f"sched: policy is {made.policy}")

    def do_tunables(self, made: MadeUpSystem, _: dict[str, Any]) -> list[dict[str, Any]]:
        name, _colon, preset = made.policy.partition(":")
        policy = self.policies[name]
        found = []
        for tunable in policy.tunables_of(preset).values():
            standard = policy.presets[preset].values[tunable.name] if preset else tunable.default
            value = made.changed.get(tunable.name, standard)
            found.append(
                {
                    "name": tunable.name,
                    "value": value,
                    "minimum": tunable.minimum,
                    "maximum": tunable.maximum,
                    "default": standard,
                    "meaning": tunable.meaning,
                }
            )
        return found

    def do_tunable(self, made: MadeUpSystem, message: dict[str, Any]) -> None:
        name, _colon, preset = made.policy.partition(":")
        tunables = self.policies[name].tunables_of(preset)
        tunable, value = tunables[message["name"]], message["value"]
        if not tunable.minimum <= value <= tunable.maximum:
            raise RefusedHere(
                f"{tunable.name} is {tunable.minimum} to {tunable.maximum}, not {value}"
            )
        made.changed[tunable.name] = value
        made.mark("tunable", f"{tunable.name} = {value}")

    def do_attribute(self, made: MadeUpSystem, message: dict[str, Any]) -> int:
        touched = self.meant(made, message)
        for each in touched:
            setattr(each, message["kind"], message["value"])
            made.mark("attribute", f"{message['kind']} {message['value']}", each.pid)
        return len(touched)

    def meant(self, made: MadeUpSystem, message: dict[str, Any]) -> list[Process]:
        found = [
            each
            for each in made.processes.values()
            if each.pid == message.get("pid") or each.group == message.get("group")
        ]
        if not found:
            raise RefusedHere(f"no process {message.get('pid')} lives")
        return found

    def do_kill(self, made: MadeUpSystem, message: dict[str, Any]) -> int:
        touched = self.meant(made, message)
        for each in touched:
            del made.processes[each.pid]
            if each in made.queue:
                made.queue.remove(each)
            made.mark("killed", f"{each.name} was killed", each.pid)
        return len(touched)

    def do_start(self, made: MadeUpSystem, message: dict[str, Any]) -> int:
        pid = made.fork(message["workload"], message["workload"], 0).pid
        made.mark("started", message["workload"], pid)
        return pid

    def do_pause(self, made: MadeUpSystem, _: dict[str, Any]) -> None:
        made.paused = True

    def do_resume(self, made: MadeUpSystem, _: dict[str, Any]) -> None:
        made.paused = False

    def do_pace(self, made: MadeUpSystem, message: dict[str, Any]) -> None:
        made.pace = float(message["speed"])

    def do_step(self, made: MadeUpSystem, _: dict[str, Any]) -> int:
        made.advance(TICK)
        return made.now

    def do_seek(self, made: MadeUpSystem, message: dict[str, Any]) -> int:
        made.seek(message["time_ns"])
        return made.now

    def do_restart(self, made: MadeUpSystem, message: dict[str, Any]) -> None:
        made.setup |= {key: message[key] for key in ("cpus", "policy", "seed") if key in message}
        made.policy, made.life, made.message = made.setup["policy"], "running", ""
        made.begin(self.processes, made.setup["cpus"])
        self.greet()

    def do_window(self, made: MadeUpSystem, _: dict[str, Any]) -> None:
        assert made

    def do_history(self, made: MadeUpSystem, _: dict[str, Any]) -> dict[str, Any]:
        return made.history()

    def do_explain(self, made: MadeUpSystem, message: dict[str, Any]) -> dict[str, Any]:
        process = made.processes.get(message["pid"])
        if process is None:
            raise RefusedHere("it has not lived in the window")
        others = [each for each in made.processes.values() if each.run and each is not process][:5]
        parts = [
            {
                "pid": each.pid,
                "name": each.name,
                "cpu": max(0, each.cpu),
                "ran_ns": TICK * 2,
                "runs": 2,
            }
            for each in others
        ]
        wait = {"begin_ns": max(0, made.now - 5 * TICK), "end_ns": made.now, "cpu": 0}
        return {
            "pid": process.pid,
            "name": process.name,
            "waits": [wait | {"why": "preempted", "parts": parts}],
            "total_ns": TICK * 2 * len(parts),
            "parts": parts,
            "idle_elsewhere_ns": 0,
        }

    def do_blame(self, made: MadeUpSystem, message: dict[str, Any]) -> dict[str, Any]:
        parts = [
            {"words": words, "pid": pid, "cause": cause, "times": 2, "duration_ns": length * TICK}
            for words, pid, cause, length in (
                ("hog 7 ran on CPU 1", 7, "ran", 3),
                ("CPU 1 was in the scheduler", 0, "scheduler", 1),
            )
        ]
        wait = {
            "kind": "wake-up",
            "begin_ns": 5 * TICK,
            "end_ns": 9 * TICK,
            "duration_ns": 4 * TICK,
            "parts": parts,
            "idle_elsewhere": [{"cpu": 0, "duration_ns": TICK}],
            "choices": [{"time_ns": 9 * TICK, "cpu": 1, "words": "it was picked: level 2"}],
            "choices_before": 3,
        }
        return {
            "pid": message["pid"],
            "begin_ns": 0,
            "end_ns": made.now,
            "waits": 2,
            "waited_ns": 5 * TICK,
            "beside_idle_ns": TICK,
            "wakeups_untold": False,
            "longest": [wait],
        }

    def do_look(self, made: MadeUpSystem, message: dict[str, Any]) -> int:
        return int(message["time_ns"])

    def do_record(self, made: MadeUpSystem, message: dict[str, Any]) -> str | None:
        made.recording = "runs/monitor-1" if message["on"] else ""
        made.mark("begin" if message["on"] else "end", "recording")
        return None if message["on"] else "runs/monitor-1"

    def do_branch(self, _: MadeUpSystem, __: dict[str, Any]) -> dict[str, str]:
        return {"unchanged": "a", "changed": "b", "folder": "runs/futures"}

    def do_report(self, _: MadeUpSystem, __: dict[str, Any]) -> str:
        return "/report/secret/index.html"

    def do_perfetto(self, _: MadeUpSystem, __: dict[str, Any]) -> str:
        return "/perfetto/secret/a.perfetto-trace"


class _File(StaticFileHandler):
    def set_extra_headers(self, path: str) -> None:
        self.set_header("Content-Security-Policy", POLICY)
        self.set_header("Cache-Control", "no-store")


class _Way(RequestHandler):
    """In place of the page's own."""

    def get(self) -> None:
        self.set_header("Content-Type", "text/javascript")
        self.write(WAY.read_bytes())


class _Vega(RequestHandler):
    def get(self) -> None:
        self.set_header("Content-Type", "text/javascript")
        self.write(vega_script())


class _Socket(WebSocketHandler):
    def initialize(self, stand_in: StandIn) -> None:
        self.stand_in = stand_in
        self._sending: dict[str, asyncio.Task[None]] = {}

    def offer(self, system: str, text: bytes) -> None:
        """A frame, unless the system's one before has not gone yet."""
        before = self._sending.get(system)
        if before is None or before.done():
            self._sending[system] = asyncio.ensure_future(self._send(text))

    async def _send(self, text: bytes) -> None:
        with suppress(WebSocketClosedError):
            await self.write_message(text)

    def open(self, *_: str, **__: str) -> None:
        if self.get_argument("token", "") != TOKEN:
            self.close(4403)
            return
        self.write_message(json.dumps(self.stand_in.hello()))
        self.stand_in.sockets.add(self)

    def on_message(self, message: str | bytes) -> None:
        self.write_message(json.dumps(self.stand_in.answer(json.loads(message))))

    def on_close(self) -> None:
        self.stand_in.sockets.discard(self)


def main() -> None:
    given = [int(each) for each in sys.argv[1:4]]
    processes, systems, port = given + [12, 2, 8111][len(given) :]
    stand_in = StandIn(processes, systems, port)
    print(f"http://127.0.0.1:{port}/?token={TOKEN}")
    asyncio.run(stand_in.serve(threading.Event()))


if __name__ == "__main__":
    main()
