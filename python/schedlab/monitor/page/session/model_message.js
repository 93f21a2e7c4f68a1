// SPDX-License-Identifier: MIT

// Reads messages of the model (model/model.h) into frames: their columns describe themselves.

const NULL = 0;
const I64 = 1;
const I32 = 2;
const BOOL = 3;
const F64 = 4;
const TEXT = 5;
const LIST = 6;

const HEADER_BYTES = 8;
const COLUMN_BYTES = 32;
const utf8 = new TextDecoder();

// Returns the root record of the message that begins at a byte of a buffer.
export function readMessage(buffer, begin) {
    const bytes = new DataView(buffer, begin).getUint32(0, true);
    const view = new DataView(buffer, begin, bytes);
    const root = {};
    const lists = new Map([["", [root]]]);
    for (let at = 0; at < view.getUint32(4, true); at++) {
        const column = readColumn(view, HEADER_BYTES + at * COLUMN_BYTES);
        const owner = ownerOf(lists, column.name);
        const path = (owner ? column.name.slice(owner.length + 1) : column.name).split(".");
        const values = valuesOf(view, column);
        if (column.kind === LIST) lists.set(column.name, values);
        let from = 0;
        lists.get(owner).forEach((record, number) => {
            if (!column.ends) return put(record, path, values[number]);
            const end = view.getUint32(column.ends + 4 * number, true);
            put(record, path, values.slice(from, end));
            from = end;
        });
    }
    return root;
}

function readColumn(view, place) {
    const [name, nameBytes, kind, width, count, data, ends] = Array.from({ length: 7 }, (_, at) =>
        view.getUint32(place + 4 * at, true),
    );
    return { name: textAt(view, name, nameBytes), kind, width, count, data, ends };
}

// Returns the list whose name is the longest prefix of the column's.
function ownerOf(lists, name) {
    let owner = "";
    for (const listName of lists.keys()) if (listName.length > owner.length && name.startsWith(`${listName}.`)) owner = listName;
    return owner;
}

function valuesOf(view, { kind, width, count, data }) {
    if (kind === NULL) return Array(count).fill(null);
    if (kind === LIST) return Array.from({ length: count }, () => ({}));
    if (kind === TEXT) return textsOf(view, count, data);
    if (!width) return numbersOf(view, kind, count, data);
    const numbers = numbersOf(view, kind, count * width, data);
    return Array.from({ length: count }, (_, at) => numbers.slice(at * width, (at + 1) * width));
}

function numbersOf(view, kind, count, data) {
    const start = view.byteOffset + data;
    if (kind === I64) return Array.from(new BigInt64Array(view.buffer, start, count), Number);
    if (kind === I32) return Array.from(new Int32Array(view.buffer, start, count));
    if (kind === F64) return Array.from(new Float64Array(view.buffer, start, count));
    if (kind === BOOL) return Array.from(new Uint8Array(view.buffer, start, count), Boolean);
    throw new Error(`a message has a column of unknown kind ${kind}`);
}

function textsOf(view, count, data) {
    const texts = data + 4 * count;
    let from = 0;
    return Array.from({ length: count }, (_, at) => {
        const end = view.getUint32(data + 4 * at, true);
        const text = textAt(view, texts + from, end - from);
        from = end;
        return text;
    });
}

function textAt(view, place, bytes) {
    return utf8.decode(new Uint8Array(view.buffer, view.byteOffset + place, bytes));
}

function put(record, path, value) {
    for (const part of path.slice(0, -1)) record = record[part] ??= {};
    record[path.at(-1)] = value;
}
