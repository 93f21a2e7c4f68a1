// SPDX-License-Identifier: MIT
//
// Draws the charts of a page, each from the specification that stands beside its place. Bundled
// with Vega, Vega-Lite and Vega-Embed, which it finds as `vegaEmbed`.

const OPTIONS = {
    renderer: "svg",
    actions: false,
    defaultStyle: false,
    tooltip: { disableDefaultStyle: true },
};
const NARROWEST = 120; // pixels of a view; what has less room is scrolled
const LABELS = 0.4; // of a chart's width, at most, are the names at its side
const ATTEMPTS = 4; // other labels of an axis take other room

// Letters as large as the page's: specifications are written for a root of 16 pixels.
function enlarge(value, scale) {
    if (Array.isArray(value)) return value.map((each) => enlarge(each, scale));
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(
        Object.entries(value).map(([name, each]) => {
            if (name === "datasets" || name === "values") return [name, each];
            const size = /fontSize$/i.test(name) && typeof each === "number";
            return [name, size ? each * scale : enlarge(each, scale)];
        }),
    );
}

// Names of half a telephone's width would leave no room for what they name.
function shortenLabels(specification, width) {
    const axis = specification.config?.axis ?? {};
    const labelLimit = Math.min(axis.labelLimit ?? 180, Math.max(80, LABELS * width));
    return {
        ...specification,
        config: { ...specification.config, axis: { ...axis, labelLimit } },
    };
}

// The signals that say how wide a chart's views are: one for all, or one for each.
function widthSignals(view, specification) {
    const parts = specification.vconcat ?? specification.hconcat ?? specification.concat ?? [];
    const each = parts.map((_, number) => `concat_${number}_width`);
    const names = ["childWidth", "child_width", ...each, "width"];
    const known = names.filter((name) => {
        try {
            return typeof view.signal(name) === "number";
        } catch {
            return false;
        }
    });
    return known.length > 1 ? known.filter((name) => name !== "width") : known;
}

// How many views stand side by side.
function columnsOf(place, specification) {
    if (specification.hconcat) return specification.hconcat.length;
    if (specification.columns) return specification.columns;
    return place.querySelectorAll(".mark-group.role-column-header > g").length || 1;
}

// Makes views as wide as there is room for, with all that stands beside them: axes, and names at
// the ends of lines, of which Vega's own fitting knows nothing.
async function fit(drawn) {
    const { place, view, signals, columns } = drawn;
    for (let attempt = 0; attempt < ATTEMPTS && signals.length; attempt++) {
        const room = place.clientWidth - place.querySelector("svg").width.baseVal.value;
        if (room >= 0 && room < 2) return;
        for (const name of signals) {
            const width = Math.floor(view.signal(name) + room / columns);
            view.signal(name, Math.max(NARROWEST, width));
        }
        await view.runAsync();
    }
}

async function draw(figure) {
    const place = figure.querySelector(".drawing");
    const scale = parseFloat(getComputedStyle(document.documentElement).fontSize) / 16;
    const written = JSON.parse(figure.querySelector("script").textContent);
    const specification = shortenLabels(enlarge(written, scale), place.clientWidth);
    try {
        const { view } = await vegaEmbed(place, specification, OPTIONS);
        const signals = widthSignals(view, specification);
        const drawn = { place, view, signals, columns: columnsOf(place, specification) };
        await fit(drawn);
        follow(drawn);
        figure.dataset.drawn = "yes";
    } catch (error) {
        console.error(`${figure.id}: ${error.message}`);
        place.replaceChildren(picture(figure.id, place.getAttribute("aria-label")));
    }
}

// Fits a chart again when its place has another width.
function follow(drawn) {
    let width = drawn.place.clientWidth;
    let work = Promise.resolve();
    new ResizeObserver(() => {
        if (drawn.place.clientWidth === width || !drawn.place.clientWidth) return;
        width = drawn.place.clientWidth;
        work = work.then(() => fit(drawn));
    }).observe(drawn.place);
}

// The file stands in for what cannot be drawn.
function picture(name, description) {
    const image = document.createElement("img");
    image.src = `files/${name}.svg`;
    image.alt = description;
    return image;
}

// One after the other, with the browser's own work between: what is at the top is there at once.
async function drawAll() {
    for (const figure of document.querySelectorAll("figure.chart")) {
        await draw(figure);
        await new Promise((go) => setTimeout(go));
    }
    document.documentElement.dataset.charts = "drawn";
}

drawAll();
