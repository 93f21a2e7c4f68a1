// SPDX-License-Identifier: MIT
//
// The layout of the run queues: a card for each CPU, with the waiting processes on its shelves, and the
// running process next to them. Plain geometry, in pixels from the top left of all cards.

const CARD_LEAST = 300; // pixels of width
const CARD_LEAST_MANY = 230; // with many CPUs
const MANY = 8;
const GAP = 10;
const PADDING = 10;
const HEAD = 22;
const FOOT = 20;
const STRIP = 40; // height of the last draw, with its pointer
const SEAT = 1.9; // height in tiles of the running process's place
const TILE_MOST = 84;
const TILE_LEAST = 15;
const TILE_GAP = 3;
const MORE = 46; // for "+37 more"
const LABEL = 18; // of a shelf
const GROWTH_LEAST = 0.5; // to show all at once; larger layouts are scrolled
const GROWTH_MOST = 1.5;
const LINES = 2; // of tiles on the one shelf of a policy without levels

/**
 * @typedef {{x: number, y: number, width: number, height: number}} Box
 * @typedef {Box & {pid: number, cpu: number, level: number, since: number, runs: boolean}} Tile
 * @typedef {Box & {level: number, more: number, label: string}} Shelf
 * @typedef {Box & {cpu: number, title: string, shelves: Shelf[], strip: Box | null, seat: Box | null, foot: Box}} Card
 */

/**
 * Computes a layout as large as fits, within limits.
 * @param {any} frame
 * @param {{levels: number[], draws: boolean}} shown of the policy: its levels, empty if it has none;
 *     `draws`: show the last draw
 * @param {number} width @param {number} room pixels that are visible without scrolling
 * @param {number} scale of the letters
 * @returns {{cards: Card[], tiles: Tile[], height: number}}
 */
export function plan(frame, shown, width, room, scale) {
    const usual = planWith(frame, shown, width, scale, 1);
    const growth = Math.min(GROWTH_MOST, room / Math.max(1, usual.height));
    if (growth < GROWTH_LEAST || !usual.cards.length) return usual;
    return planWith(frame, shown, width, scale, growth < 1 ? growth * growth : growth);
}

function planWith(frame, { levels, draws }, width, scale, growth) {
    const cpus = frame.cpus.length;
    const small = cpus > MANY;
    const least = (small ? CARD_LEAST_MANY : CARD_LEAST) * scale;
    const columns = Math.max(1, Math.floor((width + GAP) / (least + GAP)));
    const measures = {
        tileHeight: Math.round((small ? 19 : 26) * scale * growth),
        seatWidth: Math.round((small ? 84 : 118) * scale * Math.sqrt(growth)),
        strip: draws ? Math.round(STRIP * scale) : 0,
        scale,
    };
    return frame.shared_queue
        ? planShared(frame, levels, width, measures, least)
        : planGrid(frame, levels, width, measures, Math.min(columns, cpus));
}

function planGrid(frame, levels, width, measures, columns) {
    const cardWidth = (width - GAP * (columns - 1)) / columns;
    const cards = [];
    const tiles = [];
    let y = 0;
    frame.cpus.forEach((cpu, number) => {
        const x = (number % columns) * (cardWidth + GAP);
        const card = planCard({ x, y, width: cardWidth }, `CPU ${number}`, number, levels, measures, true);
        cards.push(card);
        fill(card, cpu.queue, number, tiles, measures);
        seat(card, cpu, number, tiles);
        if (number % columns === columns - 1 || number === frame.cpus.length - 1) y += card.height + GAP;
    });
    return { cards, tiles, height: y - GAP };
}

/** One queue above, all CPUs below it. */
function planShared(frame, levels, width, measures, least) {
    const tiles = [];
    const queue = planCard({ x: 0, y: 0, width }, "One queue for all CPUs", -1, levels, measures, false);
    fill(queue, frame.cpus[0]?.queue ?? [], 0, tiles, measures);
    const columns = Math.max(1, Math.min(frame.cpus.length, Math.floor((width + GAP) / (least * 0.6 + GAP))));
    const cardWidth = (width - GAP * (columns - 1)) / columns;
    const height = (HEAD + FOOT) * measures.scale + measures.tileHeight * SEAT + PADDING;
    const cards = [queue];
    frame.cpus.forEach((cpu, number) => {
        const x = (number % columns) * (cardWidth + GAP);
        const y = queue.height + GAP + Math.floor(number / columns) * (height + GAP);
        const inside = { x: x + PADDING, width: cardWidth - 2 * PADDING };
        const box = { ...inside, y: y + HEAD * measures.scale, height: measures.tileHeight * SEAT };
        const foot = { ...inside, y: y + height - FOOT * measures.scale, height: FOOT * measures.scale };
        const place = { x, y, width: cardWidth, height, foot };
        const card = { ...place, cpu: number, title: `CPU ${number}`, shelves: [], strip: null, seat: box };
        cards.push(card);
        seat(card, cpu, number, tiles);
    });
    const rows = Math.ceil(frame.cpus.length / columns);
    return { cards, tiles, height: queue.height + rows * (height + GAP) };
}

function planCard({ x, y, width }, title, cpu, levels, measures, hasSeat) {
    const { tileHeight, seatWidth, strip, scale } = measures;
    const rows = Math.max(1, levels.length);
    const shelfHeight = levels.length ? tileHeight + (levels.length > 4 ? 4 : 8) : LINES * (tileHeight + TILE_GAP) + 6;
    const shelvesHeight = Math.max(rows * shelfHeight, hasSeat ? tileHeight * SEAT : 0);
    const top = y + HEAD * scale + strip;
    const label = levels.length ? LABEL * scale : 0;
    const shelfWidth = width - 2 * PADDING - label - (hasSeat ? seatWidth + 26 * scale : 0);
    const shelves = Array.from({ length: rows }, (_, row) => ({
        x: x + PADDING + label, y: top + row * shelfHeight, width: shelfWidth, height: shelfHeight,
        level: levels.length ? levels[row] : -1, more: 0, label: levels.length ? String(levels[row]) : "",
    }));
    const height = HEAD * scale + strip + shelvesHeight + FOOT * scale + PADDING;
    const seatHeight = tileHeight * SEAT;
    return {
        x, y, width, height, cpu, title, shelves,
        strip: strip ? { x: x + PADDING, y: y + HEAD * scale, width: width - 2 * PADDING, height: strip } : null,
        seat: hasSeat
            ? {
                x: x + width - PADDING - seatWidth, y: top + (shelvesHeight - seatHeight) / 2,
                width: seatWidth, height: seatHeight,
            }
            : null,
        foot: { x: x + PADDING, y: y + height - FOOT * scale - 2, width: width - 2 * PADDING, height: FOOT * scale },
    };
}

/** Puts the waiting processes on the shelves: the first is nearest to the CPU, at the right. */
function fill(card, queue, cpu, tiles, measures) {
    for (const shelf of card.shelves) {
        const top = shelf === card.shelves[0];
        const shelfEntries = queue.filter(([, level]) => shelf.level < 0 || level === shelf.level || (level < 0 && top));
        fillShelf(shelf, shelfEntries, cpu, tiles, measures);
    }
}

function fillShelf(shelf, shelfEntries, cpu, tiles, { tileHeight, scale }) {
    const lines = shelf.level < 0 ? LINES : 1;
    const room = (taken) => Math.floor((shelf.width - taken + TILE_GAP) / (TILE_LEAST * scale + TILE_GAP));
    const all = shelfEntries.length <= lines * room(0);
    const shown = all ? shelfEntries.length : Math.max(0, lines * room(MORE * scale));
    shelf.more = shelfEntries.length - shown;
    const width = shelf.width - (shelf.more ? MORE * scale : 0);
    const wide = Math.floor(width / (TILE_MOST * scale + TILE_GAP));
    const perLine = Math.max(Math.ceil(shown / lines), Math.min(shown, wide));
    const tileWidth = Math.min(TILE_MOST * scale, (width + TILE_GAP) / Math.max(1, perLine) - TILE_GAP);
    const used = Math.max(1, Math.ceil(shown / Math.max(1, perLine)));
    const top = shelf.y + (shelf.height - 2 - used * (tileHeight + TILE_GAP) + TILE_GAP) / 2;
    for (let at = 0; at < shown; at++) {
        const [pid, level, since] = shelfEntries[at];
        const x = shelf.x + shelf.width - ((at % perLine) + 1) * (tileWidth + TILE_GAP) + TILE_GAP;
        const y = top + Math.floor(at / perLine) * (tileHeight + TILE_GAP);
        tiles.push({ pid, cpu, level, since, runs: false, x, y, width: tileWidth, height: tileHeight });
    }
}

function seat(card, cpu, number, tiles) {
    if (!cpu.running) return;
    tiles.push({ ...card.seat, pid: cpu.running, cpu: number, level: cpu.level, since: cpu.since_ns, runs: true });
}
