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

async function draw(figure) {
    const place = figure.querySelector(".drawing");
    const specification = JSON.parse(figure.querySelector("script").textContent);
    try {
        await vegaEmbed(place, specification, OPTIONS);
        figure.dataset.drawn = "yes";
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
