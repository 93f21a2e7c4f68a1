// SPDX-License-Identifier: MIT
//
// The charts of shares, as Vega specifications: two pies, and lines that converge to the ideal shares.

const FONT = 11;
const TITLE = 20;
const LABEL_LEAST = 0.3; // radians of a slice that has its PID in it

/**
 * @param {Object<string, string>} tokens @param {number} width @param {number} room maximum height in pixels
 * @param {number} scale of the letters
 */
export function pies(tokens, width, room, scale) {
    const radius = Math.max(40, Math.min(width * 0.22, (room - TITLE * scale) / 2 - 4));
    const height = 2 * radius + 8 + TITLE * scale;
    const offset = Math.min(width / 4, radius * 1.6);
    const pie = (name, x) => ({
        type: "group",
        encode: { update: { x: { signal: x }, y: { value: radius + 4 } } },
        data: [{
            name: `${name}-arcs`, source: "slices",
            transform: [
                { type: "filter", expr: `datum.kind === '${name}'` },
                { type: "pie", field: "value", sort: { field: "order" } },
            ],
        }],
        marks: [
            arcs(`${name}-arcs`, radius, tokens),
            pieLabels(`${name}-arcs`, radius, scale),
        ],
    });
    const title = (text, x) => ({
        type: "text",
        encode: { update: {
            x: { signal: x }, y: { value: height - 5 * scale }, text: { signal: text }, align: { value: "center" },
            fill: { value: tokens.soft },
            fontSize: { value: (FONT + 1) * scale }, font: { value: tokens.sans },
        } },
    });
    return {
        width, height, padding: 0, autosize: "none", background: null,
        signals: [{ name: "held", value: "" }, { name: "received", value: "CPU time received" }],
        data: [{ name: "slices" }],
        marks: [
            pie("held", `width / 2 - ${offset}`), pie("received", `width / 2 + ${offset}`),
            title("held", `width / 2 - ${offset}`), title("received", `width / 2 + ${offset}`),
        ],
    };
}

function arcs(data, radius, tokens) {
    return {
        type: "arc", from: { data },
        encode: { update: {
            startAngle: { field: "startAngle" }, endAngle: { field: "endAngle" },
            outerRadius: { value: radius }, innerRadius: { value: radius * 0.42 },
            fill: { field: "colour" }, stroke: { value: tokens.raised }, strokeWidth: { value: 1.5 },
            fillOpacity: { signal: "datum.faint ? 0.35 : 1" },
        } },
    };
}

function pieLabels(data, radius, scale) {
    return {
        type: "text", from: { data },
        encode: { update: {
            radius: { value: radius * 0.72 }, theta: { signal: "(datum.startAngle + datum.endAngle) / 2" },
            align: { value: "center" },
            baseline: { value: "middle" }, fill: { field: "ink" },
            fontSize: { value: FONT * scale }, fontWeight: { value: 600 },
            text: { signal: `datum.endAngle - datum.startAngle > ${LABEL_LEAST} ? datum.short : ''` },
        } },
    };
}

/** @param {Object<string, string>} tokens @param {number} width @param {number} height @param {number} scale */
export function lines(tokens, width, height, scale) {
    const right = 74 * scale;
    const left = 40 * scale;
    const bottom = 22 * scale;
    const axis = {
        labelColor: tokens.soft, labelFontSize: FONT * scale, labelFont: tokens.sans, domain: false,
        tickColor: tokens.line, gridColor: tokens.line,
    };
    const line = (field, dash, opacity) => ({
        type: "line", from: { data: "facet" },
        encode: { update: {
            x: { scale: "time", field: "time" }, y: { scale: "part", field }, stroke: { field: "colour" },
            strokeWidth: { value: dash ? 1.25 : 2 }, strokeDash: { value: dash },
            strokeOpacity: { signal: `chosen && datum.key !== chosen ? 0.2 : ${opacity}` },
            defined: { signal: `datum['${field}'] >= 0` },
        } },
    });
    return {
        width: Math.max(60, width - left - right), height: height - bottom - 8,
        padding: { left, right, top: 8, bottom }, autosize: "none", background: null,
        data: [{ name: "points" }, { name: "ends" }],
        signals: [
            { name: "chosen", value: "" }, { name: "from", value: 0 }, { name: "until", value: 1 }, { name: "most", value: 1 },
        ],
        scales: [
            { name: "time", type: "linear", domain: { signal: "[from, until]" }, range: "width", zero: false },
            { name: "part", type: "linear", domain: { signal: "[0, most]" }, range: "height", nice: true },
        ],
        axes: [
            {
                orient: "bottom", scale: "time", format: ".4~r", tickCount: { signal: "max(2, floor(width / 90))" },
                encode: { labels: { update: { text: { signal: "datum.label + ' s'" } } } }, ...axis,
            },
            { orient: "left", scale: "part", format: ".0%", grid: true, tickCount: 4, ...axis },
        ],
        marks: [
            {
                type: "group", from: { facet: { name: "facet", data: "points", groupby: ["key", "segment"] } },
                clip: true,
                encode: { update: { width: { signal: "width" }, height: { signal: "height" } } },
                marks: [line("ideal", [5, 4], 0.75), line("share", null, 1)],
            },
            {
                type: "text", from: { data: "ends" },
                encode: { update: {
                    x: { signal: "width + 6" }, y: { scale: "part", field: "place" }, baseline: { value: "middle" },
                    text: { field: "label" },
                    fill: { value: tokens.ink }, fontSize: { value: FONT * scale }, font: { value: tokens.sans },
                    limit: { value: right - 8 },
                    fillOpacity: { signal: "chosen && datum.key !== chosen ? 0.4 : 1" },
                } },
            },
            {
                type: "symbol", from: { data: "ends" },
                encode: { update: {
                    x: { scale: "time", field: "time" }, y: { scale: "part", field: "share" }, fill: { field: "colour" },
                    size: { value: 45 },
                    fillOpacity: { signal: "chosen && datum.key !== chosen ? 0.4 : 1" },
                } },
            },
        ],
    };
}

/**
 * Separates overlapping labels.
 * @param {{share: number}[]} ends @param {number} gap between two, in parts @param {number} most the axis's
 * end
 * @returns {any[]} with the `place` of each
 */
export function placed(ends, gap, most) {
    const sorted = ends.map((end) => ({ ...end, place: Math.max(0, end.share) }));
    sorted.sort((one, other) => one.place - other.place);
    for (let at = 1; at < sorted.length; at++) {
        sorted[at].place = Math.max(sorted[at].place, sorted[at - 1].place + gap);
    }
    let ceiling = most;
    for (let at = sorted.length - 1; at >= 0; at--) {
        sorted[at].place = Math.min(sorted[at].place, ceiling);
        ceiling = sorted[at].place - gap;
    }
    return sorted;
}
