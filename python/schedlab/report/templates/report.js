// SPDX-License-Identifier: MIT
//
// Adds conveniences to a page. All content is available without this script.

// On narrow screens, the table of contents is folded at first.
function foldContents() {
    const contents = document.querySelector(".contents details");
    if (!contents) return;
    const narrow = matchMedia("(max-width: 68rem)");
    const follow = () => {
        contents.open = !narrow.matches;
    };
    narrow.addEventListener("change", follow);
    follow();
    contents.addEventListener("click", (event) => {
        if (narrow.matches && event.target.closest("a")) contents.open = false;
    });
}

// Marks the current section in the table of contents.
function followReading() {
    const links = new Map();
    for (const link of document.querySelectorAll(".contents a")) {
        links.set(decodeURIComponent(link.hash.slice(1)), link);
    }
    const headings = [...links.keys()].map((id) => document.getElementById(id));
    let current = null;
    const mark = () => {
        const passed = headings.filter((heading) => heading.getBoundingClientRect().top < 120);
        const link = links.get((passed.at(-1) ?? headings[0])?.id);
        if (link === current) return;
        current?.removeAttribute("aria-current");
        link?.setAttribute("aria-current", "true");
        link?.scrollIntoView({ block: "nearest" });
        current = link;
    };
    mark();
    let waiting = false;
    addEventListener("scroll", () => {
        if (waiting) return;
        waiting = true;
        requestAnimationFrame(() => {
            waiting = false;
            mark();
        });
    });
}

// Shows a footnote's text next to its mark while the mark has the pointer or the focus. The mark
// remains a link to the note, which has the same text.
function showNotes() {
    const bubble = document.createElement("div");
    bubble.className = "bubble";
    bubble.hidden = true;
    bubble.setAttribute("aria-hidden", "true");
    document.body.append(bubble);

    const show = (mark) => {
        const words = document.querySelector(`[id="${mark.hash.slice(1)}"] .words`);
        if (!words) return;
        bubble.replaceChildren(...words.cloneNode(true).childNodes);
        bubble.hidden = false;
        const at = mark.getBoundingClientRect();
        const box = bubble.getBoundingClientRect();
        const left = Math.min(at.left, document.documentElement.clientWidth - box.width - 12);
        const above = at.top > box.height + 16;
        bubble.style.left = `${Math.max(12, left)}px`;
        bubble.style.top = `${above ? at.top - box.height - 8 : at.bottom + 8}px`;
    };
    const hide = () => {
        bubble.hidden = true;
    };
    for (const [shown, hidden] of [["pointerover", "pointerout"], ["focusin", "focusout"]]) {
        document.addEventListener(shown, (event) => {
            const mark = event.target.closest?.("a.mark");
            if (mark) show(mark);
        });
        document.addEventListener(hidden, hide);
    }
    addEventListener("scroll", hide, { capture: true, passive: true });
    addEventListener("keydown", (event) => {
        if (event.key === "Escape") hide();
    });
}

const LIST_ROWS = 100; // initial number of visible rows of a list

// Adds sorting by each column, and filtering by words, to lists.
function makeListsHandy() {
    for (const figure of document.querySelectorAll("figure.list")) {
        const body = figure.querySelector("tbody");
        if (!figure.querySelector("thead") || body.rows.length < 2) continue;
        const follow = addFilter(figure, body);
        const heads = [...figure.querySelectorAll("thead th")];
        heads.forEach((head, column) => addSorting(head, heads, body, column, follow));
    }
}

// Returns the text of a cell without the details that a click opens.
function cellText(cell) {
    return (cell.querySelector("summary") ?? cell).textContent;
}

function addSorting(head, heads, body, column, follow) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
        const descending = head.getAttribute("aria-sort") === "ascending";
        for (const head of heads) head.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", descending ? "descending" : "ascending");
        const rows = [...body.rows].map((row) => ({ row, cell: row.cells[column] }));
        rows.sort((one, other) => inOrder(one.cell, other.cell) * (descending ? -1 : 1));
        body.replaceChildren(...rows.map(({ row }) => row));
        follow();
    });
}

// Sorts numbers by value, and texts with numbers in natural order: run-9 before run-10.
const naturally = new Intl.Collator("en", { numeric: true });

function inOrder(one, other) {
    const [rank, rival] = [one, other].map((cell) => Number(cell.dataset.rank ?? NaN));
    if (Number.isNaN(rank) || Number.isNaN(rival)) {
        return naturally.compare(cellText(one).replaceAll(",", ""), cellText(other).replaceAll(",", ""));
    }
    return rank - rival;
}

function addFilter(figure, body) {
    const field = document.createElement("input");
    const count = document.createElement("output");
    const more = document.createElement("button");
    field.type = "search";
    field.placeholder = "Filter by words";
    field.setAttribute("aria-label", "Show rows that contain all of these words");
    const line = document.createElement("p");
    line.className = "filter";
    more.type = "button";
    line.append(field, count, more);
    figure.querySelector("figcaption").after(line);
    const total = body.rows.length;
    let room = LIST_ROWS;
    const follow = () => {
        const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
        let matchCount = 0;
        for (const row of body.rows) {
            const text = [...row.cells].map(cellText).join(" ").toLowerCase();
            const fits = words.every((word) => text.includes(word));
            matchCount += fits;
            row.hidden = !fits || matchCount > room;
        }
        const among = words.length ? `${matchCount} of ${total} rows` : `${total} rows`;
        count.textContent = matchCount > room ? `${among}, the first ${room} shown` : among;
        more.hidden = matchCount <= room;
        more.textContent = `Show all ${matchCount}`;
    };
    field.addEventListener("input", follow);
    more.addEventListener("click", () => {
        room = Infinity;
        follow();
        field.focus();
    });
    follow();
    return follow;
}

// Pages that were opened as files cannot load modules.
if (location.protocol !== "file:") import("./traces.js");

foldContents();
followReading();
showNotes();
makeListsHandy();
