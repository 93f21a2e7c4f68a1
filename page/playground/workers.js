// SPDX-License-Identifier: MIT
//
// Requests to the workers that compile and simulate. A worker that does not answer in time is replaced.

export class Requests {
    #worker = null;
    #number = 0;
    /** @type {Map<number, {resolve: (result: any) => void, reject: (error: Error) => void, timer: number}>} */
    #waiting = new Map();

    /**
     * @param {string} address of the worker's script @param {string} name of it, for errors
     * @param {number} patience_ms of one request
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
            const timer = setTimeout(() => this.#stopLate(), this.patience_ms);
            this.#waiting.set(id, { resolve, reject, timer });
            this.#worker.postMessage({ id, ...request });
        });
    }

    /** Stops the worker; its requests fail. @param {string} why */
    stop(why) {
        this.#worker?.terminate();
        this.#worker = null;
        const waiting = [...this.#waiting.values()];
        this.#waiting.clear();
        for (const { reject, timer } of waiting) {
            clearTimeout(timer);
            reject(new Error(why));
        }
    }

    #stopLate() {
        this.stop(`${this.name} took longer than ${this.patience_ms / 1000} s, and was stopped`);
    }

    #start() {
        const worker = new Worker(this.address, { type: "module" });
        worker.addEventListener("message", ({ data: { id, result, error, progress } }) => {
            if (progress) {
                this.onProgress(progress);
                for (const [waitingId, waiting] of this.#waiting) this.#extend(waitingId, waiting);
                return;
            }
            const request = this.#waiting.get(id);
            if (!request) return;
            this.#waiting.delete(id);
            clearTimeout(request.timer);
            if (error) request.reject(new Error(error));
            else request.resolve(result);
        });
        worker.addEventListener("error", (event) => {
            event.preventDefault();
            this.stop(`${this.name} cannot run: ${event.message ?? "its files are not complete"}`);
        });
        if (this.first) worker.postMessage(this.first);
        return worker;
    }

    // What is being fetched is not late.
    #extend(id, waiting) {
        clearTimeout(waiting.timer);
        waiting.timer = setTimeout(() => this.#stopLate(), this.patience_ms);
        this.#waiting.set(id, waiting);
    }
}
