// SPDX-License-Identifier: MIT
//
// The editor of the policy's source: CodeMirror with C, diagnostics with the compiler's suggested changes,
// completion of the policy interface, and marked lines.

import { autocompletion } from "@codemirror/autocomplete";
import { cpp, cppLanguage } from "@codemirror/lang-cpp";
import { HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { lintGutter, setDiagnostics } from "@codemirror/lint";
import { StateEffect, StateField } from "@codemirror/state";
import { Decoration, EditorView, hoverTooltip, WidgetType } from "@codemirror/view";
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

/** @type {import("@codemirror/state").StateEffectType<Map<number, string>>} texts after lines */
const setTexts = StateEffect.define();

class TextAfterLine extends WidgetType {
    constructor(text) {
        super();
        this.text = text;
    }

    eq(other) {
        return other.text === this.text;
    }

    toDOM() {
        const made = document.createElement("span");
        made.className = "cm-values";
        made.textContent = this.text;
        return made;
    }
}

const textsAfterLines = StateField.define({
    create: () => Decoration.none,
    update(texts, transaction) {
        for (const effect of transaction.effects) {
            if (!effect.is(setTexts)) continue;
            const { doc } = transaction.state;
            const rows = [...effect.value].filter(([line]) => line >= 1 && line <= doc.lines).sort(([one], [other]) => one - other);
            return Decoration.set(rows.map(([line, text]) => Decoration.widget({ widget: new TextAfterLine(text), side: 1 }).range(doc.line(line).to)));
        }
        return transaction.docChanged ? Decoration.none : texts;
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

/** @typedef {{label: string, detail: string, info: string, type: string, of: string}} Name `of`: the structure of a member */

const VARIABLES = { task: "task", running: "task", next: "task", previous: "task", queue: "run_queue", scheduler: "scheduler" }; // by convention
const MEMBER = /(\w+)(?:->|\.)(\w*)$/;
const COMMENT = /\/\*.*?\*\/|\/\/.*|"[^"\n]*"/gs;
const IDENTIFIER = /\b[A-Za-z_]\w{2,}\b/g;
const FIELD = /^\s*\.(\w*)$/; // of the policy's definition

/** @param {string} variable @param {string} source @returns {string | null} the structure that it points to, or null if that is not known */
function structureOf(variable, source) {
    const [, type] = new RegExp(`\\b(?:struct )?(\\w+?)(?:_t)?(?: SHARED_MEMORY)? \\*(?:const )?${variable}\\b`).exec(source) ?? [];
    return type ?? VARIABLES[variable] ?? null;
}

/** @param {string} structure @param {string} source @returns {Name[]} members of a structure that the source defines */
function membersInSource(structure, source) {
    const [, body] = new RegExp(`struct ${structure} \\{([^}]*)\\}`).exec(source) ?? [];
    const members = [...(body ?? "").matchAll(/(\w+)(?:\[[^\]]*\])?;(?:\s*\/\* (.*?) \*\/)?/g)];
    return members.map(([, label, info = ""]) => ({ label, info, detail: "", type: "property", of: structure }));
}

/** Completes members after -> and a dot, and otherwise functions, constants and words of the source. @param {Name[]} names */
function completionOf(names) {
    return (context) => {
        const source = context.state.doc.toString();
        const before = context.state.sliceDoc(context.state.doc.lineAt(context.pos).from, context.pos);
        const [, variable, typed] = MEMBER.exec(before) ?? [];
        const [, field] = FIELD.exec(before) ?? [];
        if (field !== undefined) return { from: context.pos - field.length, options: names.filter(({ of }) => of === "policy") };
        if (variable) {
            const structure = structureOf(variable, source);
            const members = names.filter(({ of }) => (structure ? of === structure : of && of !== "policy"));
            return { from: context.pos - typed.length, options: members.length ? members : membersInSource(structure, source) };
        }
        const word = context.matchBefore(/\w+/);
        if (!word && !context.explicit) return null;
        const shown = names.filter(({ of }) => !of);
        const known = new Set([...shown.map(({ label }) => label), word?.text]);
        const identifiers = [...new Set(source.replace(COMMENT, "").match(IDENTIFIER))].filter((label) => !known.has(label));
        return { from: word?.from ?? context.pos, options: [...shown, ...identifiers.map((label) => ({ label, type: "text" }))], validFor: /^\w*$/ };
    };
}

/** Explains the name under the pointer. @param {Name[]} names */
function explanationOf(names) {
    return hoverTooltip((view, position) => {
        const row = view.state.doc.lineAt(position);
        const words = [...row.text.matchAll(/\w+/g)];
        const word = words.find(({ index, 0: { length } }) => position >= row.from + index && position <= row.from + index + length);
        if (!word) return null;
        const before = row.text.slice(0, word.index);
        const [, variable] = /(\w+)->$/.exec(before) ?? [];
        const source = view.state.doc.toString();
        const structure = variable ? structureOf(variable, source) : /^\s*\.$/.test(before) ? "policy" : "";
        const [, hook] = new RegExp(`^\\s*\\.(\\w+) = ${word[0]}\\b`, "m").exec(source) ?? []; // that the function serves as
        const name = names.find(({ label, of }) => (hook ? label === hook && of === "policy" : label === word[0] && of === (structure ?? "")));
        if (!name?.info) return null;
        const dom = document.createElement("div");
        dom.className = "cm-explanation";
        dom.textContent = [hook && `The hook ${hook}(): `, name.detail && `${name.detail}: `, name.info].filter(Boolean).join("");
        return { pos: row.from + word.index, end: row.from + word.index + word[0].length, create: () => ({ dom }) };
    });
}

export class Editor {
    #quiet = false;

    /**
     * @param {HTMLElement} place @param {Name[]} names to complete and to explain
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
        const completion = [autocompletion(), cppLanguage.data.of({ autocomplete: completionOf(names) }), explanationOf(names)];
        this.view = new EditorView({
            parent: place, extensions: [syntaxHighlighting(colours), basicSetup, cpp(), completion, lintGutter(), executedLines, textsAfterLines, listener, label],
        });
    }

    get text() {
        return this.view.state.doc.toString();
    }

    set text(text) {
        this.#quiet = true;
        const changes = { from: 0, to: this.view.state.doc.length, insert: text };
        this.view.dispatch({ changes, selection: { anchor: 0 }, effects: EditorView.scrollIntoView(0) });
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

    /** Shows a text after each line, until the source changes. @param {Map<number, string>} texts lines from 1 */
    annotate(texts) {
        this.view.dispatch({ effects: setTexts.of(texts) });
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
