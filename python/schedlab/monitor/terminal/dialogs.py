# SPDX-License-Identifier: MIT
"""Dialogs: choose an entry, enter a text, read a text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Label, OptionList, Static
from textual.widgets.option_list import Option

from schedlab.base.display.names import visible_line

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
