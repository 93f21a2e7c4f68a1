// SPDX-License-Identifier: MIT
//
// Reads sched_tunables and sched_status (docs/system-calls.md): columns are separated by blanks, and no entry
// except a tunable's meaning contains blanks.

/** @param {string} text @returns {{name: string, value: number, minimum: number, maximum: number, default: number, meaning: string}[]} */
export function readTunables(text) {
    return rowsAfter(text, "NAME").map((line) => {
        const [name, value, minimum, maximum, standard, ...meaning] = line.split(/ +/);
        const numbers = [value, minimum, maximum, standard].map(Number);
        return {
            name, value: numbers[0], minimum: numbers[1], maximum: numbers[2], default: numbers[3],
            meaning: meaning.join(" "),
        };
    });
}

/** @param {string} text @returns {{name: string, pid: number, priority: number, tickets: number, slice_ns: number | null}[]} null: no limit, or not known yet */
export function readStatus(text) {
    return rowsAfter(text, "NAME").map((line) => {
        const [name, ...numbers] = line.trim().split(/ +/).toSpliced(2, 1);
        const [pid, priority, slice, tickets] = numbers.map(Number);
        return { name, pid, priority, tickets, slice_ns: Number.isNaN(slice) ? null : Math.round(slice * 1e6) };
    });
}

function rowsAfter(text, heading) {
    const lines = text.split("\n");
    const at = lines.findIndex((line) => line.startsWith(heading));
    return lines.slice(at + 1).filter((line) => line.trim());
}
