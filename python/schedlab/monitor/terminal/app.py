# SPDX-License-Identifier: MIT
"""`./schedlab top`: the terminal monitor, with the same sessions and frames as the page.

Textual draws tables and colours, and handles keys and the mouse.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, ClassVar

from rich.console import RenderableType
from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import (
    Footer,
    Input,
    Label,
    OptionList,
    RichLog,
    Static,
    TabbedContent,
    TabPane,
)
from textual.widgets.option_list import Option

from schedlab.analysis.explanation.waits import QUEUED_KINDS
from schedlab.base.display.activity import begin_display
from schedlab.base.display.names import visible, visible_line
from schedlab.errors import SchedlabError
from schedlab.monitor.commands import perform_command
from schedlab.monitor.frames import Explanation, Frame
from schedlab.monitor.session import Session
from schedlab.monitor.system import Refused
from schedlab.monitor.terminal import pictures
from schedlab.monitor.terminal.process_table import ProcessTable
from schedlab.monitor.terminal.views import SystemView
from schedlab.monitor.terminal_feed import TerminalScreen

_TIMELINE_SPANS_NS = tuple(step * 10**power for power in range(4, 11) for step in (1, 2, 5))
"""Selectable lengths (ns) of the timeline, from 10 µs to 50 s."""
_SPEEDS = (0.001, 0.01, 0.1, 0.5, 1.0, 2.0, 10.0, 100.0, 0.0)
"""Selectable speeds; 0 means as fast as possible."""
_ATTRIBUTES = (
    ("priority", "0, the highest, to 10"),
    ("tickets", "1 to 1,000,000"),
    ("weight", "1 to 10"),
)

HELP_TEXT = """\
space  pause, continue         p  policy            1-4  select a system
[ ]    slower, faster          t  tunable           F2-F8 select a view
+ -    zoom the time line      a  attribute         < >  sort by another column
w      start a workload        k  kill              o    reverse the order
c      restart with            r  record, stop      /    filter processes
       other CPUs              H  also show the monitor's processes
                               q  quit, and end all systems

Commands apply to the system with the marked letter. With capital letters (P, T, W), they apply to all
systems side by side.
"""


class MonitorApp(App[None]):
    """Shows a session and sends the user's commands to it."""

    TITLE = "schedlab"
    CSS = """
    #heads { height: auto; max-height: 12; }
    #meters { height: auto; max-height: 18; padding: 0 1; }
    TabbedContent { height: 1fr; }
    TabPane { padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "pause", "pause"),
        Binding("p", "policy('')", "policy"),
        Binding("P", "policy('*')", show=False),
        Binding("t", "tunable('')", "tunable"),
        Binding("T", "tunable('*')", show=False),
        Binding("a", "attribute", "attribute"),
        Binding("k", "kill", "kill"),
        Binding("w", "workload('')", "start"),
        Binding("W", "workload('*')", show=False),
        Binding("c", "cpus", "CPUs"),
        Binding("r", "record", "record"),
        Binding("slash", "filter", "filter"),
        Binding("H", "monitor_processes", show=False),
        Binding("left_square_bracket", "speed(-1)", "slower", show=False),
        Binding("right_square_bracket", "speed(1)", "faster", show=False),
        Binding("plus,equals_sign", "zoom(-1)", "closer", show=False),
        Binding("minus", "zoom(1)", "farther", show=False),
        *(Binding(str(n), f"system({n - 1})", show=False) for n in range(1, 5)),
        *(
            Binding(f"f{n}", f"tab('{name}')", show=False)
            for n, name in enumerate(
                ("processes", "timeline", "queues", "metrics", "waits", "decisions", "console"), 2
            )
        ),
        Binding("question_mark,f1", "help", "help"),
        Binding("q", "quit", "leave"),
    ]

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session
        self.views = {letter: SystemView(letter) for letter in session.systems}
        self.current = next(iter(self.views))
        self.span_index = _TIMELINE_SPANS_NS.index(1_000_000_000)
        self.explanation: Explanation | None = None
        self.wait_breakdown: dict[str, Any] | None = None
        """The breakdown of the chosen process's longest waits."""
        self._logged_lines = dict.fromkeys(self.views, 0)
        self._screen: TerminalScreen | None = None

    def compose(self) -> ComposeResult:
        yield Static(id="heads")
        yield Static(id="meters")
        with TabbedContent(initial="processes"):
            with TabPane("Processes", id="processes"):
                yield ProcessTable()
            for title, name in (
                ("Time line", "timeline"),
                ("Run queues", "queues"),
                ("Metrics", "metrics"),
                ("Waits", "waits"),
                ("Decisions", "decisions"),
            ):
                with TabPane(title, id=name), VerticalScroll():
                    yield Static(id=f"{name}-picture")
            with TabPane("Console", id="console"):
                yield RichLog(max_lines=2000, id="log")
        yield Footer()

    def on_mount(self) -> None:
        self._screen = TerminalScreen(self.session, self.show)
        self.query_one(ProcessTable).focus()

    def on_unmount(self) -> None:
        if self._screen:
            self._screen.close()

    # --- input

    def show(self, frames: Sequence[Frame]) -> None:
        """Takes the next frames and redraws."""
        for frame in frames:
            self.views[frame["system"]].add_frame(frame)
        if self.is_running:
            self.draw()

    # --- drawing

    @property
    def current_view(self) -> SystemView:
        """The system shown in detail."""
        return self.views[self.current]

    def draw(self) -> None:
        """Draws heads, meters and the open tab."""
        heads = [
            pictures.draw_head(system, system is self.current_view)
            for system in self.views.values()
        ]
        picture = heads[0]
        for head in heads[1:]:
            picture.append("\n").append_text(head)
        self.query_one("#heads", Static).update(picture)
        width = self.size.width - 4
        self.query_one("#meters", Static).update(pictures.draw_meters(self.current_view, width))
        tab = self.query_one(TabbedContent).active
        if tab == "processes" and self.current_view.frame is not None:
            self.query_one(ProcessTable).show(self.current_view.frame["processes"])
        elif tab == "console":
            self.draw_log()
        elif tab in self.tab_pictures:
            drawn = self.tab_pictures[tab](width - 2)
            self.query_one(f"#{tab}-picture", Static).update(drawn)

    @property
    def tab_pictures(self) -> dict[str, Callable[[int], RenderableType]]:
        """Functions that draw each tab, given a width in columns."""
        return {
            "timeline": lambda width: pictures.draw_timeline(
                self.current_view, width, _TIMELINE_SPANS_NS[self.span_index]
            ),
            "queues": lambda width: pictures.draw_queues(self.current_view),
            "metrics": lambda width: pictures.metrics_table(list(self.views.values())),
            "waits": lambda width: pictures.draw_waits(
                self.explanation, self.wait_breakdown, width
            ),
            "decisions": lambda width: pictures.decisions_table(
                self.current_view, max(self.size.height - 8, 5)
            ),
        }

    def draw_log(self) -> None:
        """Appends new log lines."""
        log = self.query_one("#log", RichLog)
        new = self.current_view.line_count - self._logged_lines[self.current]
        for line in list(self.current_view.log)[-new:] if new else []:
            log.write(line)
        self._logged_lines[self.current] = self.current_view.line_count

    # --- commands

    async def perform(self, command: str, system: str = "", **arguments: Any) -> Any:
        """Sends a command to a system (by default, the current one) and returns the result.

        If the command fails, shows the error and returns None.
        """
        try:
            return await perform_command(
                self.session, {"do": command, "system": system or self.current, **arguments}
            )
        except SchedlabError as error:
            self.notify(visible(str(error)), severity="error", timeout=10, markup=False)
            return None

    def show_message(self, text: str) -> None:
        """Shows a notification."""
        self.notify(visible(text), timeout=4, markup=False)

    async def action_pause(self) -> None:
        frame = self.current_view.frame
        await self.perform("resume" if frame is not None and frame["paused"] else "pause", "*")

    async def action_speed(self, by: int) -> None:
        speeds = [*_SPEEDS]
        nearest = min(range(len(speeds)), key=lambda at: abs(speeds[at] - self.session.pace))
        speed = speeds[min(max(nearest + by, 0), len(speeds) - 1)]
        await self.perform("pace", "*", speed=speed)
        if self.session.pace == speed:
            self.show_message("as fast as it goes" if speed == 0 else f"speed {speed:g}")

    def action_zoom(self, by: int) -> None:
        self.span_index = min(max(self.span_index + by, 0), len(_TIMELINE_SPANS_NS) - 1)
        self.draw()

    def action_policy(self, system: str) -> None:
        options = []
        for policy in self.session.choices.policies:
            options.append((policy["name"], policy["meaning"]))
            for name, preset in policy["presets"].items():
                options.append((f"{policy['name']}:{name}", preset["meaning"]))
        frame = self.current_view.frame
        screen = ChoiceDialog("policy", options, frame["policy"] if frame is not None else "")
        self.push_screen(
            screen, lambda chosen: self.run_in_background(self.set_policy(chosen, system))
        )

    async def set_policy(self, policy: str | None, system: str) -> None:
        if policy:
            await self.perform("policy", system, policy=policy)

    async def action_tunable(self, system: str) -> None:
        tunables = await self.perform("tunables")
        if not tunables:
            self.show_message("the policy has no tunables")
            return
        options = [
            (
                f"{tunable['name']}={tunable['value']}",
                f"{tunable['minimum']} to {tunable['maximum']}: {tunable['meaning']}",
            )
            for tunable in tunables
        ]
        self.push_screen(
            ChoiceDialog("tunable", options), lambda chosen: self.ask_tunable_value(chosen, system)
        )

    def ask_tunable_value(self, chosen: str | None, system: str) -> None:
        if chosen:
            name, _, value = chosen.partition("=")
            self.push_screen(
                TextEntryDialog(f"{name}: the value", value),
                lambda text: self.run_in_background(self.set_tunable(name, text, system)),
            )

    async def set_tunable(self, name: str, text: str | None, system: str) -> None:
        number = self.parse_number(text)
        if number is not None:
            await self.perform("tunable", system, name=name, value=number)

    def parse_number(self, text: str | None) -> int | None:
        """Parses an integer; returns None for an empty or invalid text, and reports the latter."""
        if not text:
            return None
        try:
            return int(text)
        except ValueError:
            self.notify(visible(f"{text}: not a whole number"), severity="error", markup=False)
            return None

    def action_attribute(self) -> None:
        pid = self.query_one(ProcessTable).chosen_pid
        if not pid:
            self.show_message("choose a process in the table first")
            return
        self.push_screen(
            ChoiceDialog(f"attribute of process {pid}", _ATTRIBUTES),
            lambda kind: self.ask_attribute(pid, kind),
        )

    def ask_attribute(self, pid: int, kind: str | None) -> None:
        if kind:
            value = self.query_one(ProcessTable).value_of(pid, kind)
            self.push_screen(
                TextEntryDialog(f"{kind} of process {pid}", "" if value is None else str(value)),
                lambda text: self.run_in_background(self.set_attribute(pid, kind, text)),
            )

    async def set_attribute(self, pid: int, kind: str, text: str | None) -> None:
        number = self.parse_number(text)
        if number is not None:
            await self.perform("attribute", pid=pid, kind=kind, value=number)

    async def action_kill(self) -> None:
        pid = self.query_one(ProcessTable).chosen_pid
        if not pid:
            self.show_message("choose a process in the table first")
        elif await self.perform("kill", pid=pid):
            self.show_message(f"process {pid} was killed")

    def action_workload(self, system: str) -> None:
        options = [
            (workload.name, workload.title) for workload in self.session.choices.palette.values()
        ]
        self.push_screen(
            ChoiceDialog("start a workload", options),
            lambda chosen: self.run_in_background(self.start_workload(chosen, system)),
        )

    async def start_workload(self, name: str | None, system: str) -> None:
        if name and (pid := await self.perform("start", system, workload=name)):
            self.show_message(f"{name} was started: process {pid}")

    def action_cpus(self) -> None:
        cpus = str(self.session.systems[self.current].setup.cpus)
        self.push_screen(
            TextEntryDialog("restart with this number of CPUs", cpus),
            lambda text: self.run_in_background(self.restart(text)),
        )

    async def restart(self, text: str | None) -> None:
        number = self.parse_number(text)
        if number is not None:
            await self.perform("restart", "*", cpus=number)

    async def action_record(self) -> None:
        recording = any(system.recorder for system in self.session.systems.values())
        result = await self.perform("record", "*", on=not recording)
        if result:
            self.show_message(f"kept in {result}")

    # --- display

    def action_filter(self) -> None:
        table = self.query_one(ProcessTable)
        self.push_screen(TextEntryDialog("filter processes", table.filter), self.filter_by)

    def filter_by(self, text: str | None) -> None:
        if text is not None:
            table = self.query_one(ProcessTable)
            table.filter = text
            table.rearrange()

    def action_monitor_processes(self) -> None:
        table = self.query_one(ProcessTable)
        table.shows_monitor = not table.shows_monitor
        table.rearrange()

    def action_system(self, number: int) -> None:
        if number < len(self.views):
            self.current = list(self.views)[number]
            self.explanation = self.wait_breakdown = None
            self.query_one("#log", RichLog).clear()
            self._logged_lines[self.current] = max(
                self.current_view.line_count - len(self.current_view.log), 0
            )
            self.draw()

    def action_tab(self, name: str) -> None:
        self.query_one(TabbedContent).active = name

    async def on_tabbed_content_tab_activated(self) -> None:
        await self.explain()
        self.draw()

    def action_help(self) -> None:
        self.push_screen(TextDialog(HELP_TEXT))

    async def on_process_table_selected(self, event: ProcessTable.Selected) -> None:
        await self.explain(event.pid)

    async def explain(self, pid: int = 0) -> None:
        """Shows what ran while a process waited, and breaks down its longest waits.

        PID 0 means the selected process. Called again whenever the tab is opened.
        """
        pid = pid or self.query_one(ProcessTable).chosen_pid
        if pid and self._screen:
            with suppress(Refused):
                self.explanation = self._screen.frame_maker(self.current).explain(pid)
        if pid and self.current_view.frame and self.query_one(TabbedContent).active == "waits":
            self.wait_breakdown = None
            self.run_in_background(self.break_down_waits(pid, self.current_view.frame["now_ns"]))

    async def break_down_waits(self, pid: int, now_ns: int) -> None:
        """Breaks down the waits up to `now_ns` and draws them."""
        request = {"do": "blame", "system": self.current, "pid": pid, "time_ns": now_ns}
        with suppress(SchedlabError):
            self.wait_breakdown = await perform_command(
                self.session, {**request, "kinds": list(QUEUED_KINDS)}
            )
            self.draw()

    def run_in_background(self, work: Any) -> None:
        """Runs a task in the background."""
        self.run_worker(work, exit_on_error=False)


async def run_app(session: Session) -> None:
    """Runs the app until the user quits."""
    begin_display()
    app = MonitorApp(session)
    try:
        await app.run_async()
    except asyncio.CancelledError:
        app.exit()
        raise


_STYLE = """
{name} {{ align: center middle; }}
{name} > Vertical {{
    width: 90%; max-width: 100; height: auto; max-height: 90%;
    border: round $accent; background: $surface; padding: 0 1;
}}
{name} OptionList {{ height: auto; max-height: 24; }}
"""


class ChoiceDialog(ModalScreen[str | None]):
    """Lets the user choose an entry; returns its name, or None if cancelled. Typing filters the entries."""

    DEFAULT_CSS = _STYLE.format(name="ChoiceDialog")
    BINDINGS: ClassVar[list[BindingType]] = [
        ("escape", "dismiss(None)", "leave"),
        ("down", "app.focus_next", "to the list"),
    ]

    def __init__(self, title: str, options: Sequence[tuple[str, str]], present: str = "") -> None:
        """`options`: pairs of name and meaning. `current`: the name that is selected first."""
        super().__init__()
        self.heading = title
        self.options = options
        self.current = present

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Label(visible_line(self.heading), markup=False)
            yield Input(placeholder="type to find, Enter to choose")
            yield OptionList()

    def on_mount(self) -> None:
        self.filter_options("")

    def filter_options(self, text: str) -> None:
        """Shows only entries that contain the text."""
        matches = [option for option in self.options if text.lower() in " ".join(option).lower()]
        choices = self.query_one(OptionList)
        choices.clear_options()
        for name, meaning in matches:
            mark = "●" if name == self.current else " "
            choices.add_option(Option(Text(visible_line(f"{mark} {name:<28} {meaning}")), id=name))
        if matches:
            choices.highlighted = 0

    def on_input_changed(self, event: Input.Changed) -> None:
        self.filter_options(event.value)

    def on_input_submitted(self, _event: Input.Submitted) -> None:
        choices = self.query_one(OptionList)
        if choices.highlighted is not None:
            self.dismiss(choices.get_option_at_index(choices.highlighted).id)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(event.option.id)


class TextEntryDialog(ModalScreen[str | None]):
    """Lets the user enter a text; returns it, or None if the dialog was cancelled."""

    DEFAULT_CSS = _STYLE.format(name="TextEntryDialog")
    BINDINGS: ClassVar[list[BindingType]] = [("escape", "dismiss(None)", "leave")]

    def __init__(self, question: str, value: str = "") -> None:
        super().__init__()
        self.question = question
        self.value = value

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Label(visible_line(self.question), markup=False)
            yield Input(value=self.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.dismiss(event.value.strip())


class TextDialog(ModalScreen[None]):
    """Shows a text."""

    DEFAULT_CSS = _STYLE.format(name="TextDialog")
    BINDINGS: ClassVar[list[BindingType]] = [
        ("escape,enter,q,question_mark", "dismiss", "leave"),
    ]

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(self.text, markup=False)
