// SPDX-License-Identifier: MIT
//
// The tickets of a draw as a strip. The trace contains the drawn ticket and each process's number of tickets,
// but not their order. So the others are placed on both sides of the winner such that the drawn ticket is one
// of the winner's.

const TRIES_MOST = 40_000;

/** @typedef {[number, number]} Part a PID (0: the processes that are not listed), and its tickets */

/**
 * @param {Part} winner @param {Part[]} others @param {number} more tickets of processes that are not listed
 * @param {number} ticket the drawn one, counted from 0
 * @returns {{parts: Part[], drawn: number}} from the left; `drawn`: the place of the ticket on the strip
 */
export function ticketStrip(winner, others, more, ticket) {
    const sorted = [...others].sort((one, other) => one[0] - other[0]);
    const least = ticket - winner[1] + 1; // tickets before the winner's; at most `ticket` of them
    const left = subset(sorted, Math.max(0, least - more), ticket);
    const total = sumOf(sorted) + winner[1] + more;
    if (!left || !(ticket < total)) {
        // The policy multiplies tickets: only the winner is known.
        return { parts: taken([winner, ...sorted, [0, more]]), drawn: winner[1] / 2 };
    }
    const filled = Math.max(0, least - sumOf(left));
    const right = sorted.filter((part) => !left.includes(part));
    return { parts: taken([...left, [0, filled], winner, ...right, [0, more - filled]]), drawn: ticket + 0.5 };
}

function sumOf(parts) {
    return parts.reduce((sum, [, tickets]) => sum + tickets, 0);
}

function taken(parts) {
    return parts.filter(([, tickets]) => tickets > 0);
}

/** @returns {Part[] | null} some parts with this many tickets together; null: none, or too many were tried */
function subset(parts, least, most) {
    let tries = 0;
    const search = (at, sum, chosen) => {
        if (sum >= least) return chosen;
        if (at === parts.length || ++tries > TRIES_MOST) return null;
        const next = sum + parts[at][1];
        return (next <= most && search(at + 1, next, [...chosen, parts[at]])) || search(at + 1, sum, chosen);
    };
    return search(0, 0, []);
}
