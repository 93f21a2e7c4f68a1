// SPDX-License-Identifier: MIT
//
// Animates boxes to their new places, so that users can follow demotions, boosts and picks. Users who prefer
// reduced motion get no animation.

const LASTS_MS = 320;
const OF_GAP = 0.6; // of the time between two frames: all boxes rest before the next frame
const TOGETHER_MOST = 600; // boxes; more are moved at once, because users cannot follow them

const still = matchMedia("(prefers-reduced-motion: reduce)");

/** @typedef {import("./queue_plan.js").Tile} Tile */

export class Motion {
    /** @type {Map<number, {from: Tile, to: Tile, alpha: number}>} by PID */
    #tiles = new Map();
    #began = -Infinity;
    #aimed = -Infinity;
    #lasts = LASTS_MS;

    /** @param {Tile[]} tiles their new places @param {number} wall_ms @param {boolean} [atOnce] */
    aim(tiles, wall_ms, atOnce = false) {
        const jump = atOnce || still.matches || tiles.length > TOGETHER_MOST;
        const next = new Map();
        for (const to of tiles) {
            const known = jump ? null : this.#tiles.get(to.pid);
            const from = known ? this.#between(known, wall_ms) : to;
            next.set(to.pid, { from, to, alpha: known || jump ? 1 : 0 });
        }
        this.#tiles = next;
        this.#began = jump ? -Infinity : wall_ms;
        this.#lasts = Math.min(LASTS_MS, OF_GAP * (wall_ms - this.#aimed));
        this.#aimed = wall_ms;
    }

    /** Returns true if any box is moving. @param {number} wall_ms */
    moves(wall_ms) {
        return wall_ms < this.#began + this.#lasts;
    }

    /**
     * @param {number} wall_ms @returns {(Tile & {alpha: number})[]} their present places; running ones last
     */
    now(wall_ms) {
        const part = this.#part(wall_ms);
        const tiles = [...this.#tiles.values()].map((tile) => {
            return { ...this.#between(tile, wall_ms), alpha: Math.max(tile.alpha, part) };
        });
        return tiles.sort((one, other) => Number(one.runs) - Number(other.runs));
    }

    #between({ from, to }, wall_ms) {
        const part = this.#part(wall_ms);
        if (part >= 1 || from === to) return to;
        const mix = (name) => from[name] + part * (to[name] - from[name]);
        return { ...to, x: mix("x"), y: mix("y"), width: mix("width"), height: mix("height") };
    }

    /** Quick at first, gentle at the end. */
    #part(wall_ms) {
        const time = Math.min(1, Math.max(0, (wall_ms - this.#began) / Math.max(1, this.#lasts)));
        return 1 - (1 - time) ** 3;
    }
}
