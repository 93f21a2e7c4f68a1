// SPDX-License-Identifier: MIT
//
// A trace that grows as a source: with what no trace tells, which is heard between its records.

import { Recording } from "./recording.js";

export class LiveSource extends Recording {
    /** @type {{at: number, rows: any[]}[]} what sched_status said, and how many records had come before */
    #statuses = [];
    #heard = 0; // how many of all that ever were
    #dropped = 0;
    #limit = Infinity;
    /** Is given rows of sched_status when their turn has come. */
    tell = () => {};

    /** @param {any[]} rows of sched_status */
    hear(rows) {
        const last = this.#statuses.at(-1);
        // Of several in a row the last says all.
        if (last?.at === this.tape.length && this.#next === last) last.rows = rows;
        else this.#statuses.push({ at: this.tape.length, rows });
    }

    /** Says no more than so many records, though others may be of the same moment. */
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

    /** Drops what was before a copy. */
    forgetBefore({ at, heard }) {
        this.tape.forgetBefore(at);
        this.#statuses.splice(0, heard - this.#dropped);
        this.#dropped = heard;
    }
}
