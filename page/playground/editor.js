// SPDX-License-Identifier: MIT
//
// The editor of the policy's source: CodeMirror with C, diagnostics with the compiler's suggested changes,
// completion of the policy interface, and marked lines.

import { autocompletion, completeFromList } from "@codemirror/autocomplete";
import { cpp, cppLanguage } from "@codemirror/lang-cpp";
import { HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { lintGutter, setDiagnostics } from "@codemirror/lint";
import { StateEffect, StateField } from "@codemirror/state";
import { Decoration, EditorView } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { basicSetup } from "codemirror";

/** @type {import("@codemirror/state").StateEffectType<number[]>} lines from 1 */
const setLines = StateEffect.define();
const executed = Decoration.line({ class: "cm-executed" });

const executedLines = StateField.define({
    create: () => Decoration.none,
    update(lines, transaction) {
        for (const effect of transaction.effects) {
            if (!effect.is(setLines)) continue;
            const { doc } = transaction.state;
            const places = effect.value.filter((line) => line >= 1 && line <= doc.lines).sort((one, other) => one - other);
            return Decoration.set(places.map((line) => executed.range(doc.line(line).from)));
        }
        return transaction.docChanged ? Decoration.none : lines;
    },
    provide: (field) => EditorView.decorations.from(field),
});

/** In the theme's colours, which are legible by day and by night. */
const colours = HighlightStyle.define([
    { tag: tags.comment, color: "var(--soft)", fontStyle: "italic" },
    { tag: [tags.keyword, tags.processingInstruction], color: "var(--accent)", fontWeight: "650" },
    { tag: tags.typeName, color: "var(--accent)" },
    { tag: [tags.string, tags.character], color: "var(--good)" },
    { tag: [tags.number, tags.bool, tags.null], color: "var(--bad)" },
]);

export class Editor {
    #quiet = false;

    /**
     * @param {HTMLElement} place @param {{label: string, detail: string, info: string, type: string}[]} names to complete
     * @param {() => void} changed the user changed the source @param {(line: number) => void} chosen the user
     * moved to a line
     */
    constructor(place, names, changed, chosen) {
        let line = 0;
        const listener = EditorView.updateListener.of((update) => {
            if (update.docChanged && !this.#quiet) changed();
            if (!update.selectionSet || update.docChanged) return;
            const now = update.state.doc.lineAt(update.state.selection.main.head).number;
            if (now !== line) chosen(now);
            line = now;
        });
        const label = EditorView.contentAttributes.of({ "aria-label": "The policy's source, in C", tabindex: "0" });
        const completion = [autocompletion(), cppLanguage.data.of({ autocomplete: completeFromList(names) })];
        this.view = new EditorView({
            parent: place, extensions: [syntaxHighlighting(colours), basicSetup, cpp(), completion, lintGutter(), executedLines, listener, label],
        });
    }

    get text() {
        return this.view.state.doc.toString();
    }

    set text(text) {
        this.#quiet = true;
        this.view.dispatch({ changes: { from: 0, to: this.view.state.doc.length, insert: text } });
        this.#quiet = false;
    }

    /** @param {import("./compiler.js").Diagnostic[]} diagnostics */
    diagnose(diagnostics) {
        const { doc } = this.view.state;
        const place = (line, column) => {
            const row = doc.line(Math.min(Math.max(line, 1), doc.lines));
            return Math.min(row.from + column - 1, row.to);
        };
        const shown = diagnostics.map(({ line, column, severity, text, changes }) => {
            const from = place(line, column);
            const word = /^\w+/.exec(doc.sliceString(from, from + 80));
            const apply = (view) => view.dispatch({
                changes: changes.map((change) => ({ from: place(...change.from), to: place(...change.to), insert: change.text })),
            });
            return {
                from, to: from + (word?.[0].length ?? 0), message: text,
                severity: severity === "note" ? "info" : severity,
                actions: changes.length ? [{ name: "Apply the compiler's suggestion", apply }] : [],
            };
        });
        this.view.dispatch(setDiagnostics(this.view.state, shown.sort((one, other) => one.from - other.from)));
    }

    /** Marks executed lines. @param {number[]} lines */
    mark(lines) {
        this.view.dispatch({ effects: setLines.of(lines) });
    }

    /** Scrolls to a line. @param {number} line */
    show(line) {
        const { doc } = this.view.state;
        const { from } = doc.line(Math.min(Math.max(line, 1), doc.lines));
        this.view.dispatch({ effects: EditorView.scrollIntoView(from, { y: "center" }) });
    }

    /** Moves the cursor to a line. @param {number} line */
    goTo(line) {
        const { doc } = this.view.state;
        const { from } = doc.line(Math.min(Math.max(line, 1), doc.lines));
        this.view.dispatch({ selection: { anchor: from }, effects: EditorView.scrollIntoView(from, { y: "center" }) });
        this.view.focus();
    }
}
