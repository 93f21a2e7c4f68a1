// SPDX-License-Identifier: MIT
//
// A lab's text: the part of Markdown that labs use, as elements. Nothing in it is interpreted as HTML. A command
// line that the page has a button for becomes that button; the text says of others where they run.

import { element } from "../../python/schedlab/monitor/page/elements.js";

const INLINE = /(`[^`]+`|\*\*[^*]+\*\*|\*[^*\s][^*]*\*|\[[^\]]+\]\([^)\s]*\))/;
const ITEM = /^(?:(\d+)\.|[-*]) +(.*)$/;
const HEADING = /^#+ +(.*)$/;
const COMMAND = "./schedlab ";
const GRADE = `${COMMAND}grade `;

/** @param {string} text @returns {(Node | string)[]} */
function inline(text) {
    return text.split(INLINE).filter(Boolean).flatMap((part) => {
        if (part.startsWith(`\`${COMMAND}`)) return [element("code", { textContent: part.slice(1, -1) }), " (at a command line)"];
        if (/^`.+`$/.test(part)) return element("code", { textContent: part.slice(1, -1) });
        if (/^\*\*.+\*\*$/.test(part)) return element("b", { textContent: part.slice(2, -2) });
        if (/^\*[^*].*\*$/.test(part)) return element("em", { textContent: part.slice(1, -1) });
        return part.replace(/^\[([^\]]+)\]\(.*\)$/, "$1"); // the folder has no other pages
    });
}

/** @param {string[]} lines of a list, with continued items @returns {HTMLElement} */
function list(lines) {
    const items = [];
    for (const line of lines) {
        const [, , words] = ITEM.exec(line) ?? [];
        if (words === undefined) items.push(`${items.pop()} ${line.trim()}`);
        else items.push(words);
    }
    return element(/^\d/.test(lines[0]) ? "ol" : "ul", {}, ...items.map((item) => element("li", {}, ...inline(item))));
}

/** @param {string[]} lines @param {() => HTMLElement} makeCheck @returns {HTMLElement} */
function verbatim(lines, makeCheck) {
    const text = lines.map((line) => line.slice(4)).join("\n");
    if (text.startsWith(GRADE)) return element("p", {}, makeCheck(), " grades your source by the visible tests, and lists them in the tab tests.");
    const made = element("pre", { tabIndex: 0, textContent: text });
    return text.startsWith(COMMAND) ? element("div", {}, element("p", { textContent: "At a command line:" }), made) : made;
}

/** @param {string} markdown @param {() => HTMLElement} makeCheck makes a button that grades @returns {HTMLElement[]} without its title */
export function elementsOf(markdown, makeCheck) {
    const blocks = markdown.split(/\n\s*\n/).map((block) => block.replace(/^\n+|\s+$/g, "")).filter(Boolean);
    return blocks.filter((block) => !block.startsWith("# ")).map((block) => {
        const lines = block.split("\n");
        const [, heading] = HEADING.exec(block) ?? [];
        if (lines.every((line) => line.startsWith("    "))) return verbatim(lines, makeCheck);
        if (heading && lines.length === 1) return element("h3", {}, ...inline(heading));
        if (ITEM.test(lines[0])) return list(lines);
        return element("p", {}, ...inline(lines.map((line) => line.trim()).join(" ")));
    });
}
