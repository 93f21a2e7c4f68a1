// SPDX-License-Identifier: MIT
//
// A cached drawing for views that only move. Tens of thousands of runs are drawn once, with a margin beside
// the view, and each frame of a pan copies a part.

const MARGIN = 0.3; // of the view's width, drawn on each side of it
const MARGIN_LIVE = 0.08; // on the right; a view that follows now never goes back

/**
 * @typedef {{left: number, right: number, begin: number, end: number}} Span
 * @typedef {Object} Wish
 * @property {Span} span of the view
 * @property {number} top @property {number} height pixels
 * @property {boolean} live true if the view follows now
 * @property {string} key everything except time that the drawing depends on
 * @property {number} frame the number of the last frame @property {number} now the end of the data
 */

export class Layer {
    #canvas = document.createElement("canvas");
    #context = this.#canvas.getContext("2d");
    #begin = 0;
    #end = 0;
    #key = "";
    #frame = -1;
    #now = 0;
    #home = 0;
    /** The number of actual drawings, excluding copies. */
    drawings = 0;

    /**
     * @param {CanvasRenderingContext2D} context to draw into @param {Wish} wish
     * @param {(context: CanvasRenderingContext2D, span: Span, home: number) => void} draw `home`: the pixel
     * of `span` where the view begins
     */
    paint(context, request, draw) {
        const { span, top, height } = request;
        const ratio = window.devicePixelRatio || 1;
        const scale = (span.right - span.left) / (span.end - span.begin);
        const key = `${request.key} ${scale} ${span.right - span.left} ${height} ${ratio}`;
        const stale = request.frame !== this.#frame && this.#end > this.#now;
        if (key !== this.#key || stale || span.begin < this.#begin || span.end > this.#end) {
            this.#draw(request, scale, ratio, draw);
            this.#key = key;
        }
        const from = Math.round((span.begin - this.#begin) * scale * ratio);
        const width = Math.round((span.right - span.left) * ratio);
        const rows = Math.round(height * ratio);
        context.drawImage(this.#canvas, from, 0, width, rows, span.left, top, width / ratio, rows / ratio);
    }

    /**
     * Returns true if it was copied to another place since it was drawn. Then names may lie outside of the
     * view.
     */
    moved(begin) {
        return begin !== this.#home;
    }

    /** Forces the next paint to draw again. */
    forget() {
        this.#key = "";
    }

    #draw({ span, height, live, frame, now }, scale, ratio, draw) {
        const view = span.end - span.begin;
        const before = live ? 0 : MARGIN * view;
        this.#begin = span.begin - before;
        this.#end = span.end + (live ? MARGIN_LIVE : MARGIN) * view;
        this.#home = span.begin;
        this.#frame = frame;
        this.#now = now;
        const width = (this.#end - this.#begin) * scale;
        const columns = Math.ceil(width * ratio);
        const rows = Math.round(height * ratio);
        if (this.#canvas.width !== columns || this.#canvas.height !== rows) {
            this.#canvas.width = columns;
            this.#canvas.height = rows;
        }
        this.#context.setTransform(1, 0, 0, 1, 0, 0);
        this.#context.clearRect(0, 0, columns, rows);
        this.#context.setTransform(ratio, 0, 0, ratio, 0, 0);
        draw(this.#context, { left: 0, right: width, begin: this.#begin, end: this.#end }, before * scale);
        this.drawings += 1;
    }
}
