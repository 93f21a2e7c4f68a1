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
const NARROWEST = 120;

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

// Views one below the other have no width of their place, as one view has: they are drawn once,
// measured, and drawn again with what is left or lacking.
async function drawColumn(place, specification) {
    const { view } = await vegaEmbed(place, specification, OPTIONS);
    const room = place.clientWidth - place.querySelector("svg").getBoundingClientRect().width;
    if (Math.abs(room) < 2) return;
    view.finalize();
    const vconcat = specification.vconcat.map((each) => ({
        ...each,
        width: Math.max(NARROWEST, each.width + room),
    }));
    await vegaEmbed(place, { ...specification, vconcat }, OPTIONS);
}

async function draw(figure) {
    const place = figure.querySelector(".drawing");
    const scale = parseFloat(getComputedStyle(document.documentElement).fontSize) / 16;
    const written = JSON.parse(figure.querySelector("script").textContent);
    const specification = enlarge(written, scale);
    try {
        if (specification.vconcat?.every((each) => typeof each.width === "number")) {
            await drawColumn(place, specification);
        } else {
            await vegaEmbed(place, specification, OPTIONS);
        }
    } catch (error) {
        console.error(`${figure.id}: ${error.message}`);
        place.replaceChildren(picture(figure.id, place.getAttribute("aria-label")));
    }
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
