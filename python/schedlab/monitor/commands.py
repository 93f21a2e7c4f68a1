# SPDX-License-Identifier: MIT
"""Performs the commands that pages and terminals send to a session (docs/monitor-protocol.md)."""

import asyncio
import math
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from schedlab.base.display.names import map_texts
from schedlab.base.toolchain.policies import PolicyChoice, describe_unknown_name, parse_choices
from schedlab.errors import SchedlabError, WrongUsage
from schedlab.machines import SIMULATOR
from schedlab.monitor import worker
from schedlab.monitor.branching import branch_system
from schedlab.monitor.session import Session
from schedlab.monitor.system import Ability, Life, Refused, Setup
from schedlab.monitor.systems.simulator import workload_text
from schedlab.monitor.wait_breakdown import WaitQuestion
from schedlab.monitor.watched_system import WatchedSystem
from schedlab.runs.branches import BranchChanges
from schedlab.runs.plan import TICK_RANGE_NS
from schedlab.runs.request import check_given_once
from schedlab.trace.format import AttributeKind
from schedlab.workload.model import ATTRIBUTES

Message = Mapping[str, Any]
ReportProgress = Callable[[str], None]

_ALL_SYSTEMS = "*"
_WINDOW_RANGE_S = (0.1, 600.0)
_SPEED_MAX = 1e6
_LABEL_CHARACTERS_MAX = 80
_ACTION_PATTERN = re.compile(
    r"\d{1,18} (?:policy [\w:.-]{1,63}|tunable [\w-]{1,63}=-?\d{1,18}|start \d{1,19} [^\n]{1,255}|kill \d{1,9}"
    r"|(?:priority|tickets|weight) \d{1,9} \d{1,9})"
)
_SETTING_PATTERN = re.compile(r"([A-Za-z0-9_-]{1,63})=(-?\d{1,18})")


async def perform_command(
    session: Session, message: Message, show: ReportProgress = lambda line: None
) -> Any:
    """Performs a message's command and returns the result.

    `show` receives progress lines of long commands.

    For a message to one system, returns its result; for several systems, a result for each letter.
    Raises SchedlabError if a system could not perform the command.
    """
    action = _read_text(message, "do")
    systems = systems_of(session, message)
    if action in _SESSION_COMMANDS:
        return await _SESSION_COMMANDS[action](session, systems, message, show)
    if action not in _SYSTEM_COMMANDS:
        raise WrongUsage(
            describe_unknown_name("command", action, [*_SYSTEM_COMMANDS, *_SESSION_COMMANDS])
        )
    outcomes = await asyncio.gather(
        *(_SYSTEM_COMMANDS[action](session, system, message) for system in systems),
        return_exceptions=True,
    )
    error = _combined_error(systems, outcomes)
    if error:
        raise error
    if len(outcomes) == 1:
        return outcomes[0]
    return {system.letter: result for system, result in zip(systems, outcomes, strict=True)}


def systems_of(session: Session, message: Message) -> list[WatchedSystem]:
    """Returns the systems named by a message: one letter, or all systems.

    Raises WrongUsage if one of them does not exist.
    """
    letter = message.get("system", _ALL_SYSTEMS)
    if letter is None or letter == _ALL_SYSTEMS:
        return list(session.systems.values())
    if str(letter) not in session.systems:
        raise WrongUsage(describe_unknown_name("system", str(letter), session.systems))
    return [session.systems[str(letter)]]


def _combined_error(
    systems: Sequence[WatchedSystem], outcomes: Sequence[Any]
) -> BaseException | None:
    """Combines the exceptions in `outcomes` (one result per system) into one; None if there are none."""
    pairs = zip(systems, outcomes, strict=True)
    failures = [(system, error) for system, error in pairs if isinstance(error, BaseException)]
    if not failures:
        return None
    if len(systems) == 1 or not all(isinstance(error, SchedlabError) for _, error in failures):
        return failures[0][1]
    return Refused("; ".join(f"{system.letter}: {error}" for system, error in failures))


# --- what is in a message


def _read_text(message: Message, key: str) -> str:
    value = message.get(key)
    if not isinstance(value, str) or not value:
        raise WrongUsage(f"{key}: expected a text, not {value!r}")
    return value


def read_integer(message: Message, key: str) -> int:
    """Returns a 64-bit integer of a message. Raises WrongUsage if the message has no such integer."""
    value = message.get(key)
    if isinstance(value, bool) or not isinstance(value, int) or not -(1 << 63) <= value < 1 << 63:
        raise WrongUsage(f"{key}: expected a whole number, not {value!r}")
    return value


def _read_texts(message: Message, key: str) -> list[str]:
    value = message.get(key)
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise WrongUsage(f"{key}: expected a list of texts, not {value!r}")
    return value


def _read_number(message: Message, key: str, minimum: float, maximum: float) -> float:
    value = message.get(key)
    if (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and math.isfinite(value)
        and minimum <= value <= maximum
    ):
        return float(value)
    raise WrongUsage(f"{key}: expected a number from {minimum:g} to {maximum:g}, not {value!r}")


def _read_choice(message: Message, key: str, choices: Sequence[str]) -> str:
    value = _read_text(message, key)
    if value not in choices:
        raise WrongUsage(f"{key}: {describe_unknown_name(key, value, choices)}")
    return value


def _parse_policy(text: str) -> PolicyChoice:
    try:
        choices = parse_choices(text)
    except ValueError as error:
        raise WrongUsage(str(error)) from None
    if len(choices) != 1:
        raise WrongUsage(f"{text}: a system has one policy at a time; give only one")
    return choices[0]


def _read_pids(message: Message) -> list[int]:
    """Returns the PIDs of a message, which has either `pid` or `pids`."""
    pids = message.get("pids")
    if pids is None:
        return [read_integer(message, "pid")]
    if not isinstance(pids, list) or not pids:
        raise WrongUsage(f"pids: expected a list of whole numbers, not {pids!r}")
    return [read_integer({"pids": pid}, "pids") for pid in pids]


# --- of each system


async def _set_policy(session: Session, target: WatchedSystem, message: Message) -> None:
    choice = _parse_policy(_read_text(message, "policy"))
    async with target.locked(Ability.POLICY) as system:
        session.choices.check_policy(replace(target.setup, policy=choice, settings=()))
        await target.steer(f"policy {choice}", system.set_policy(str(choice)))


async def _set_tunable(session: Session, target: WatchedSystem, message: Message) -> None:
    name, value = _read_text(message, "name"), read_integer(message, "value")
    async with target.locked(Ability.POLICY) as system:
        await target.steer(f"tunable {name}={value}", system.set_tunable(name, value))


async def _read_tunables(
    session: Session, target: WatchedSystem, message: Message
) -> list[dict[str, Any]]:
    async with target.locked() as system:
        return [asdict(tunable) for tunable in await system.read_tunables()]


async def _read_status(session: Session, system: WatchedSystem, message: Message) -> dict[str, Any]:
    status = await system.read_status()
    content = {
        "policy": status.policy,
        "changed": dict(status.changed),
        "rows": [asdict(row) for row in status.rows],
        "remark": status.remark,
    }
    return map_texts(content)


async def _set_attribute(session: Session, system: WatchedSystem, message: Message) -> int:
    kind = _read_choice(message, "kind", list(ATTRIBUTES))
    limits = ATTRIBUTES[kind]
    value = read_integer(message, "value")
    if not limits.least <= value <= limits.most:
        raise WrongUsage(f"{kind}: expected {limits.least} to {limits.most}, not {value}")
    return await system.set_attribute(_read_pids(message), AttributeKind[kind.upper()], value)


async def _start_workload(session: Session, target: WatchedSystem, message: Message) -> int:
    name = _read_text(message, "workload")
    session.choices.check_workloads([name])
    async with target.locked(Ability.START) as system:
        pid = await target.steer(f"start {name}", system.start_workload(name))
    target.started[name] = None
    return pid


async def _kill_processes(session: Session, system: WatchedSystem, message: Message) -> int:
    return await system.kill(_read_pids(message))


async def _pause_system(session: Session, system: WatchedSystem, message: Message) -> None:
    await system.pause()


async def _resume_system(session: Session, system: WatchedSystem, message: Message) -> None:
    await system.resume()


async def _follow_page(session: Session, system: WatchedSystem, message: Message) -> None:
    """Repeats a page's actions on the server's copy of a system that the page itself runs."""
    if not system.is_played_by_page:
        raise Refused(
            "follow: this system runs on the server, not in the browser; use pause and resume"
        )
    setup = system.setup
    if setup.machine == SIMULATOR:
        setup = replace(_changed_setup(setup, message), settings=_read_settings(message))
        session.choices.check(setup)
    actions = _read_texts(message, "acts")
    invalid_actions = [act for act in actions if not _ACTION_PATTERN.fullmatch(act)]
    if invalid_actions:
        raise WrongUsage(
            f"acts: expected TIME_NS ACTION ARGUMENTS, such as `120000000 tickets PID 77`,"
            f" not {invalid_actions[0]!r}"
        )
    await system.follow(setup, actions, read_integer(message, "time_ns"))


async def _workload_text(session: Session, system: WatchedSystem, message: Message) -> str:
    """Returns a workload in the simulator's text format, for a page that runs it in the browser."""
    name = _read_text(message, "workload")
    session.choices.check_workloads([name])
    tick_ns = read_integer(message, "tick_ns")
    if not TICK_RANGE_NS[0] <= tick_ns <= TICK_RANGE_NS[1]:
        raise WrongUsage(
            f"tick_ns: expected {TICK_RANGE_NS[0]} to {TICK_RANGE_NS[1]}, not {tick_ns}"
        )
    entry = session.choices.palette[name]
    return await asyncio.to_thread(workload_text, entry, read_integer(message, "seed"), tick_ns)


async def _restart_system(session: Session, system: WatchedSystem, message: Message) -> None:
    if system.system and Ability.SETUP not in system.system.abilities:
        raise Refused(
            f"{system.setup.machine} cannot restart with other values; start another monitor with these values"
        )
    setup = _changed_setup(system.setup, message)
    session.choices.check(setup)
    await system.restart(setup)
    others = [other.common_ns for other in session.systems.values() if other.is_ready]
    system.set_common_time(min(others, default=0))
    session.announce_change()
    if system.life is Life.FAILED:
        raise Refused(system.message)


def _changed_setup(setup: Setup, message: Message) -> Setup:
    changes: dict[str, Any] = {
        key: read_integer(message, key)
        for key in ("cpus", "seed", "tick_ns")
        if message.get(key) is not None
    }
    if message.get("policy") is not None:
        changes["policy"] = _parse_policy(_read_text(message, "policy"))
        # The tunables belong to the policy that they were set for.
        if changes["policy"] != setup.policy:
            changes["settings"] = ()
    if message.get("workloads") is not None:
        changes["workloads"] = tuple(_read_texts(message, "workloads"))
    return replace(setup, **changes)


async def _export_perfetto(session: Session, system: WatchedSystem, message: Message) -> str:
    return session.publish(await system.export_perfetto(session.scratch))


async def _break_down_waits(
    session: Session, system: WatchedSystem, message: Message
) -> dict[str, Any]:
    kinds = _read_texts(message, "kinds")
    time_ns = min(max(read_integer(message, "time_ns"), 0), system.now_ns)
    at_ns = None if message.get("at_ns") is None else read_integer(message, "at_ns")
    begin_ns = max(time_ns - session.window_ns, 0)
    question = WaitQuestion(read_integer(message, "pid"), kinds, time_ns, begin_ns, at_ns)
    explanation = await system.break_down_waits(
        session.scratch, question, session.choices.catalogue
    )
    return map_texts(explanation)


_SYSTEM_COMMANDS: dict[str, Callable[[Session, WatchedSystem, Message], Awaitable[Any]]] = {
    "policy": _set_policy,
    "tunable": _set_tunable,
    "tunables": _read_tunables,
    "status": _read_status,
    "attribute": _set_attribute,
    "start": _start_workload,
    "kill": _kill_processes,
    "pause": _pause_system,
    "resume": _resume_system,
    "follow": _follow_page,
    "text": _workload_text,
    "restart": _restart_system,
    "perfetto": _export_perfetto,
    "blame": _break_down_waits,
}


# --- of the session


async def _set_pace(
    session: Session, systems: Sequence[WatchedSystem], message: Message, report: ReportProgress
) -> None:
    speed = _read_number(message, "speed", 0, _SPEED_MAX)
    played_systems = [system for system in systems if system.is_played]
    if not played_systems:
        raise Refused(
            "pace: this machine runs in real time; leave the pace out, or add a simulated system"
        )
    session.pace = speed
    for system in played_systems:
        system.played.speed = speed


async def _set_window(
    session: Session, systems: Sequence[WatchedSystem], message: Message, report: ReportProgress
) -> None:
    session.window_ns = int(_read_number(message, "seconds", *_WINDOW_RANGE_S) * 1e9)
    session.announce_change()


async def _control_recording(
    session: Session, systems: Sequence[WatchedSystem], message: Message, show: ReportProgress
) -> Any:
    is_start = message.get("on")
    if not isinstance(is_start, bool):
        raise WrongUsage(f"on: expected true or false, not {is_start!r}")
    if is_start:
        label = message.get("label") or ""
        if not isinstance(label, str) or len(label) > _LABEL_CHARACTERS_MAX:
            raise WrongUsage(
                f"label: expected a text of at most {_LABEL_CHARACTERS_MAX} characters"
            )
        session.start_recording(systems, label)
        return None
    show("the metrics of the recording")
    folders = await stop_recording(session, systems)
    if len(systems) == 1:
        return folders[systems[0].letter]
    return folders


async def stop_recording(session: Session, systems: Sequence[WatchedSystem]) -> dict[str, str]:
    """Ends all recordings and returns their run folders by system letter.

    Raises Refused if nothing was being recorded.
    """
    recorded_systems = [system for system in systems if system.recording]
    if not recorded_systems:
        raise Refused("no recording is in progress; start one first")
    outcomes = await asyncio.gather(
        *(system.stop_recording() for system in recorded_systems), return_exceptions=True
    )
    folders = {
        system.letter: folder
        for system, folder in zip(recorded_systems, outcomes, strict=True)
        if isinstance(folder, Path)
    }
    session.last_recorded_folders += folders.values()
    error = _combined_error(recorded_systems, outcomes)
    if error:
        raise error
    return {letter: str(folder) for letter, folder in folders.items()}


async def _write_report(
    session: Session, systems: Sequence[WatchedSystem], message: Message, show: ReportProgress
) -> str:
    """Ends recordings in progress and writes one report of all recorded runs."""
    async with session.report_lock:
        return await _make_report(session, show)


async def _make_report(session: Session, show: ReportProgress) -> str:
    if any(system.recording for system in session.systems.values()):
        show("the metrics of the recording")
        await stop_recording(session, list(session.systems.values()))
    if not session.last_recorded_folders:
        raise Refused("nothing is recorded; start a recording first")
    out = session.last_recorded_folders[0].parent / "report"
    return session.publish(await worker.write_report(session.last_recorded_folders, out, show))


async def _branch_system(
    session: Session, systems: Sequence[WatchedSystem], message: Message, show: ReportProgress
) -> dict[str, str]:
    system = systems[0]
    policy = _parse_policy(_read_text(message, "policy")) if message.get("policy") else None
    if policy:
        session.choices.check_policy(replace(system.setup, policy=policy, settings=()))
    changes = BranchChanges(policy, check_given_once("settings", _read_settings(message)))
    if not changes.changes:
        raise WrongUsage("branch: nothing to change; choose a policy or set a tunable")
    return await branch_system(session, system, read_integer(message, "time_ns"), changes, show)


def _read_settings(message: Message) -> tuple[tuple[str, int], ...]:
    """Parses settings such as {"settings": "slice=3 boost=100"}."""
    text = message.get("settings", "")
    if not isinstance(text, str):
        raise WrongUsage(f"settings: expected a text, not {text!r}")
    matches = [_SETTING_PATTERN.fullmatch(word) for word in text.replace(",", " ").split()]
    pairs = [(match[1], int(match[2])) for match in matches if match]
    if len(pairs) < len(matches):
        raise WrongUsage(f"settings: {text}: expected NAME=NUMBER, such as slice=3")
    return tuple(pairs)


_SESSION_COMMANDS: dict[
    str, Callable[[Session, Sequence[WatchedSystem], Message, ReportProgress], Awaitable[Any]]
] = {
    "pace": _set_pace,
    "window": _set_window,
    "record": _control_recording,
    "report": _write_report,
    "branch": _branch_system,
}
