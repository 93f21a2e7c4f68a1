// SPDX-License-Identifier: MIT
//
// A growing trace as a source, with data that no trace contains; these arrive between its records.

import { Recording } from "./recording.js";

export class LiveSource extends Recording {
    /** @type {{at: number, rows: any[]}[]} contents of sched_status, and how many records had come before */
    #statuses = [];
    #heard = 0; // number of all consumed entries ever
    #dropped = 0;
    #limit = Infinity;
    /** Receives rows of sched_status when their turn has come. */
    tell = () => {};

    /** @param {any[]} rows of sched_status */
    hear(rows) {
        const last = this.#statuses.at(-1);
        // Of several in a row the last one suffices.
        if (last?.at === this.tape.length && this.#next === last) last.rows = rows;
        else this.#statuses.push({ at: this.tape.length, rows });
    }

    /** Limits the consumed records, though later ones may be of the same moment. */
    limit(records) {
        this.#limit = records;
    }

    take() {
        while (this.#next?.at <= this.at) {
            this.tell(this.#next.rows);
            this.#heard += 1;
        }
        const next = this.#next?.at ?? Infinity;
        const taken = super.take(Math.min(next, this.#limit));
        return taken.count || this.at < next || next >= this.#limit ? taken : this.take();
    }

    get #next() {
        return this.#statuses[this.#heard - this.#dropped];
    }

    snapshot() {
        return { ...super.snapshot(), heard: this.#heard };
    }

    restore(copy) {
        super.restore(copy);
        this.#heard = copy.heard;
    }

    /** Drops data older than a copy. */
    forgetBefore({ at, heard }) {
        this.tape.forgetBefore(at);
        this.#statuses.splice(0, heard - this.#dropped);
        this.#dropped = heard;
    }
}
