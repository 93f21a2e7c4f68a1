// SPDX-License-Identifier: MIT
//
// Draws the charts of a page from the specifications next to their places. The bundle contains
// Vega, Vega-Lite and Vega-Embed, as the name `vegaEmbed`.

const OPTIONS = {
    renderer: "svg",
    actions: false,
    defaultStyle: false,
    tooltip: { disableDefaultStyle: true },
};
const NARROWEST = 120; // minimum width of a plot in pixels; narrower places scroll
const LABELS = 0.4; // maximum fraction of a chart's width for labels of the vertical axis
const NAMES = 0.55; // maximum fraction of a chart's width for a name in the legend
const LEGENDS = [Infinity, 3, 2, 1]; // columns of a legend, tried until it fits
const PNG_SCALE = 2;
const ATTEMPTS = 4; // a new width can change an axis's labels, and thus the needed width

// Returns the specification with changed numbers: `change(name, number, above)` returns the new
// number, where `above` is the name of the parent object.
function adapted(value, change, above = "") {
    if (Array.isArray(value)) return value.map((element) => adapted(element, change, above));
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(
        Object.entries(value).map(([name, entry]) => {
            if (name === "datasets" || name === "values") return [name, entry];
            if (typeof entry === "number") return [name, change(name, entry, above)];
            return [name, adapted(entry, change, name)];
        }),
    );
}

// Returns the specification for the page's font size, the place's width and a legend of `columns`.
// Specifications assume a root font size of 16 pixels, and the width of paper.
function forPlace(specification, width, columns) {
    const scale = parseFloat(getComputedStyle(document.documentElement).fontSize) / 16;
    const change = (name, number, above) => {
        if (/fontSize$/i.test(name)) return number * scale;
        if (name === "labelLimit" && above.startsWith("axis")) {
            return Math.min(number * scale, Math.max(80, LABELS * width));
        }
        if (name === "labelLimit" && above === "legend") {
            return Math.min(number * scale, NAMES * width);
        }
        return name === "columns" && above === "legend" ? Math.min(number, columns) : number;
    };
    const made = adapted(specification, change);
    const { legend = {}, title = {} } = made.config;
    if (columns !== Infinity) legend.columns = columns;
    made.config = { ...made.config, legend, title: { ...title, limit: width } };
    return made;
}

// Returns the signals of the plots' widths: one for all plots, or one for each.
function widthSignals(view, specification) {
    const parts = specification.vconcat ?? specification.hconcat ?? specification.concat ?? [];
    const partPaths = parts.map((_, number) => `concat_${number}_width`);
    const names = ["childWidth", "child_width", ...partPaths, "width"];
    const known = names.filter((name) => {
        try {
            return typeof view.signal(name) === "number";
        } catch {
            return false;
        }
    });
    return known.length > 1 ? known.filter((name) => name !== "width") : known;
}

// Returns the number of plots side by side.
function columnsOf(place, specification) {
    if (specification.hconcat) return specification.hconcat.length;
    if (specification.columns) return specification.columns;
    return place.querySelectorAll(".mark-group.role-column-header > g").length || 1;
}

// Widens the plots to fill the place together with axes and labels at line ends. Vega's autosize
// ignores these labels.
async function fit(drawn) {
    const { place, view, signals, narrowest, columns } = drawn;
    for (let attempt = 0; attempt < ATTEMPTS && signals.length; attempt++) {
        const room = place.clientWidth - place.querySelector("svg").width.baseVal.value;
        if (room >= 0 && room < 2) return;
        for (const name of signals) {
            const width = Math.floor(view.signal(name) + room / columns);
            view.signal(name, Math.max(narrowest, width));
        }
        await view.runAsync();
    }
    await useRoom(drawn);
}

// If a legend is wider than the place, plots can use the legend's width.
async function useRoom({ place, view, signals, columns }) {
    const svg = place.querySelector("svg").width.baseVal;
    const before = svg.value;
    const narrow = signals.length && columns === 1 && before > place.clientWidth;
    if (!narrow || signals.some((name) => view.signal(name) > NARROWEST)) return;
    const widen = async (pixels) => {
        for (const name of signals) {
            view.signal(name, Math.max(NARROWEST, view.signal(name) + pixels));
        }
        await view.runAsync();
    };
    await widen(place.clientWidth - NARROWEST);
    await widen(before - svg.value);
}

function legendFits(place) {
    const legends = [...place.querySelectorAll(".role-legend")];
    return legends.every((legend) => legend.getBoundingClientRect().width <= place.clientWidth);
}

async function draw(figure) {
    const place = figure.querySelector(".drawing");
    const written = JSON.parse(figure.querySelector("script").textContent);
    try {
        for (const names of LEGENDS) {
            const specification = forPlace(written, place.clientWidth, names);
            const { view } = await vegaEmbed(place, specification, OPTIONS);
            const signals = widthSignals(view, specification);
            const narrowest = specification.usermeta?.narrowest ?? NARROWEST;
            const drawn = { place, view, signals, narrowest, columns: columnsOf(place, specification) };
            await fit(drawn);
            if (names === LEGENDS.at(-1) || legendFits(place)) {
                follow(drawn);
                offerView(figure, view);
                break;
            }
            view.finalize();
        }
        describe(place);
        figure.dataset.drawn = "yes";
    } catch (error) {
        console.error(`${figure.id}: ${error.message}`);
        place.replaceChildren(standIn(figure, place.getAttribute("aria-label")));
    }
}

// Moves the description to the picture, so that its menus remain accessible.
function describe(place) {
    const svg = place.querySelector("svg");
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", place.getAttribute("aria-label"));
    place.removeAttribute("role");
    place.removeAttribute("aria-label");
}

// Fits the chart again after each change of its place's width.
function follow(drawn) {
    let width = drawn.place.clientWidth;
    let work = Promise.resolve();
    new ResizeObserver(() => {
        if (drawn.place.clientWidth === width || !drawn.place.clientWidth) return;
        width = drawn.place.clientWidth;
        work = work.then(() => fit(drawn));
    }).observe(drawn.place);
}

// Offers the current view, with its zoom and selection, as files that the page creates.
function offerView(figure, view) {
    const line = figure.querySelector(".files");
    if (!line) return;
    const kinds = { SVG: () => svgOf(view), PNG: () => pngOf(view), CSV: () => csvOf(view) };
    const buttons = Object.entries(kinds).map(([kind, make]) => {
        const button = document.createElement("button");
        button.type = "button";
        button.textContent = kind;
        button.setAttribute("aria-label", `${kind} of this view`);
        button.addEventListener("click", async () => {
            save(await make(), `${figure.id}-view.${kind.toLowerCase()}`);
        });
        return button;
    });
    const group = document.createElement("span");
    group.className = "view";
    group.append("this view ", ...buttons);
    line.append(group);
}

function save(blob, name) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

// For paper: black text, even if the page has a dark theme.
async function svgOf(view) {
    const text = await view.toSVG();
    const onPaper = text.replace("<svg", '<svg style="color: #111; background: white"');
    return new Blob([onPaper], { type: "image/svg+xml" });
}

async function pngOf(view) {
    const image = new Image();
    image.src = URL.createObjectURL(await svgOf(view));
    await image.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [image.width * PNG_SCALE, image.height * PNG_SCALE];
    const context = canvas.getContext("2d");
    context.fillStyle = "white";
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.drawImage(image, 0, 0, canvas.width, canvas.height);
    URL.revokeObjectURL(image.src);
    return new Promise((done) => canvas.toBlob(done, "image/png"));
}

// Returns the data as CSV: a row for each visible mark.
function csvOf(view) {
    const rows = new Map();
    for (const datum of drawnIn(view.scenegraph().root)) {
        const row = Object.fromEntries(Object.entries(datum).filter(([name]) => !name.startsWith("_")));
        rows.set(JSON.stringify(row), row);
    }
    const names = [...new Set([...rows.values()].flatMap(Object.keys))];
    const lines = [names, ...[...rows.values()].map((row) => names.map((name) => row[name]))];
    const text = lines.map((line) => `${line.map(csvField).join(",")}\n`).join("");
    return new Blob([text], { type: "text/csv" });
}

function* drawnIn(mark, width = Infinity) {
    const isMark = mark.role === "mark" && mark.marktype !== "group";
    for (const item of mark.items ?? []) {
        const { x1, x2 } = item.bounds;
        if (isMark && item.datum && x2 >= 0 && x1 <= width) yield item.datum;
        if (mark.role?.startsWith("legend") || mark.role?.startsWith("axis")) continue;
        for (const below of mark.marktype === "group" ? item.items : []) yield* drawnIn(below, item.width || width);
    }
}

// Quotes a field as in RFC 4180. A quote prefix prevents spreadsheets from evaluating formulas.
function csvField(value) {
    const text = String(value ?? "");
    const safe = typeof value === "string" && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
    return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

// Returns the replacement of a chart that cannot be drawn: its picture, or else its description.
function standIn(figure, description) {
    const file = figure.querySelector('.files a[href$=".svg"]');
    if (!file) return description;
    const image = document.createElement("img");
    image.src = file.href;
    image.alt = description;
    return image;
}

// Draws charts one by one and yields to the browser in between, so the first ones appear early.
async function drawAll() {
    for (const figure of document.querySelectorAll(".chart")) {
        await draw(figure);
        await new Promise((go) => setTimeout(go));
    }
    document.documentElement.dataset.charts = "drawn";
}

drawAll();
