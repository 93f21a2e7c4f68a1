// SPDX-License-Identifier: MIT
//
// Requests to the workers that compile and simulate. A worker that answers nothing for too long is replaced.

export class Requests {
    #worker = null;
    #number = 0;
    #timer = 0;
    /** @type {Map<number, {resolve: (result: any) => void, reject: (error: Error) => void}>} */
    #waiting = new Map();

    /**
     * @param {string} address of the worker's script @param {string} name of it, for errors
     * @param {number} patience_ms from a request or an answer to the next answer
     * @param {any} first the first message to each new worker; null: none
     * @param {(progress: {done: number, total: number}) => void} [onProgress] megabytes
     */
    constructor(address, name, patience_ms, first = null, onProgress = () => {}) {
        this.address = address;
        this.name = name;
        this.patience_ms = patience_ms;
        this.first = first;
        this.onProgress = onProgress;
    }

    /** @param {any} request @returns {Promise<any>} its result */
    ask(request) {
        this.#worker ??= this.#start();
        const id = ++this.#number;
        return new Promise((resolve, reject) => {
            this.#waiting.set(id, { resolve, reject });
            if (this.#waiting.size === 1) this.#watch();
            this.#worker.postMessage({ id, ...request });
        });
    }

    /** Stops the worker if it has a request. @param {string} why */
    cancel(why) {
        if (this.#waiting.size) this.stop(why);
    }

    /** Stops the worker; its requests fail. @param {string} why */
    stop(why) {
        this.#worker?.terminate();
        this.#worker = null;
        const waiting = [...this.#waiting.values()];
        this.#waiting.clear();
        this.#watch();
        for (const { reject } of waiting) reject(new Error(why));
    }

    // A request may wait for those before it, which takes as long as the machine is busy.
    #watch() {
        clearTimeout(this.#timer);
        const late = () => this.stop(`${this.name} took longer than ${this.patience_ms / 1000} s, and was stopped`);
        if (this.#waiting.size) this.#timer = setTimeout(late, this.patience_ms);
    }

    #start() {
        const worker = new Worker(this.address, { type: "module" });
        worker.addEventListener("message", ({ data: { id, result, error, progress } }) => {
            const request = this.#waiting.get(id);
            this.#waiting.delete(id);
            this.#watch();
            if (progress) this.onProgress(progress);
            else if (error) request?.reject(new Error(error));
            else request?.resolve(result);
        });
        worker.addEventListener("error", (event) => {
            event.preventDefault();
            this.stop(`${this.name} cannot run: ${event.message ?? "its files are not complete"}`);
        });
        if (this.first) worker.postMessage(this.first);
        return worker;
    }
}
