// SPDX-License-Identifier: MIT
//
// Vega, which draws all charts larger than a sparkline. The reports use it already, and it accepts data as
// they come. Its expression interpreter needs no compiled code, which the page's Content-Security-Policy
// forbids. It is loaded when a chart first becomes visible.

const SCRIPT = new URL("../vega.js", import.meta.url);

/** @type {Promise<any> | null} */
let loading = null;

/** @returns {Promise<(place: HTMLElement, specification: any, options: any) => Promise<any>>} vegaEmbed */
export function loadVega() {
    loading ??= load().catch((error) => {
        loading = null; // the next chart may succeed
        throw error;
    });
    return loading;
}

function load() {
    if (globalThis.vegaEmbed) return Promise.resolve(globalThis.vegaEmbed);
    return new Promise((resolve, reject) => {
        const script = document.createElement("script");
        script.src = SCRIPT.href;
        script.addEventListener("load", () => resolve(globalThis.vegaEmbed));
        script.addEventListener("error", () => reject(new Error("The chart library could not be loaded.")));
        document.head.append(script);
    });
}

/** A chart in a place of the page. */
export class Chart {
    /** @type {any} Vega's view; null: not loaded yet */
    view = null;
    #serial = 0;
    #running = Promise.resolve();

    /** @param {HTMLElement} place */
    constructor(place) {
        this.place = place;
    }

    /** Draws it again. @param {any} specification of Vega */
    async embed(specification) {
        const serial = ++this.#serial;
        const embed = await loadVega();
        if (serial !== this.#serial) return;
        this.view?.finalize();
        const options = { mode: "vega", ast: true, actions: false, defaultStyle: false, renderer: "canvas", tooltip: false };
        const { view } = await embed(this.place, specification, options);
        if (serial === this.#serial) this.view = view;
        else view.finalize();
    }

    /** Applies changes one after the other. @param {(view: any) => any} change @returns {Promise<void>} */
    update(change) {
        this.#running = this.#running.then(async () => {
            if (!this.view) return;
            change(this.view);
            await this.view.runAsync();
        });
        return this.#running;
    }

    end() {
        this.#serial += 1;
        this.view?.finalize();
        this.view = null;
    }
}
