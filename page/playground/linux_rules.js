// SPDX-License-Identifier: MIT
//
// The rules of Linux's verifier that can be decided in a browser: from LLVM's intermediate code of the policy,
// compiled as for BPF. base/toolchain/verifier.py decides them from a BPF object.

const STACK_BYTES = 512; // of a program and all that it calls
const CALL_DEPTH = 8; // frames, with the host's
const FRAME_BYTES = 32; // the kernel rounds frames up to a multiple
const PARAMETERS_MOST = 5;
const POINTER_BYTES = 8; // of BPF
const GUARD = "may_goto";
const FUNCTION = /^define .*? @([\w.$-]+)\((.*)\) .*?(?:!dbg !(\d+) )?\{$/;
const HOOK = /^call_/; // of policy_compile.bpf.c
const LABEL = /^([\w.$-]+):/;
const TARGET = /label %([\w.$-]+)/g;
const CALLED = /\bcall [^@]*?@([\w.$-]+)\(/;
const THROUGH_POINTER = /\bcall [^@"]*? %[\w.]+\(/;
const ALLOCATED = /= alloca (.+), align \d+/;
const FLOATING = /= (?:fadd|fsub|fmul|fdiv|frem|fneg|fcmp|sitofp|uitofp|fptosi|fptoui|fpext|fptrunc|(?:load|call) (?:float|double))\b/;
const TYPE = /^(%[\w.]+) = type (.+)$/;
const NODE = /^!(\d+) = (?:distinct )?!(DILocation|DISubprogram|DILexicalBlock|DIFile)\((.*)\)$/;

/** What this page cannot decide. */
export const NOT_CHECKED = "the stack that the compiler adds, copies of whole structures, and how many instructions the verifier follows";

/**
 * @typedef {{line: number, text: string}} Broken rule; line 0: not known
 * @typedef {{to: string[], isGuarded: boolean, places: number[]}} Block `places`: nodes of locations
 * @typedef {{name: string, isHook: boolean, place: number, parameters: number, blocks: Map<string, Block>,
 *     calls: {name: string, place: number}[], throughPointer: number[], floating: number[], stack: number}} Function
 */

/** @param {string} text LLVM's intermediate code @param {string} file of the policy @returns {Broken[]} */
export function brokenRules(text, file) {
    const rows = text.split("\n");
    const types = new Map(rows.map((row) => TYPE.exec(row)).filter(Boolean).map(([, name, type]) => [name, type]));
    const lineAt = locations(rows, file);
    const functions = functionsIn(rows, types);
    const broken = [...functions.values()].flatMap((made) => [...rulesOf(made, lineAt)]);
    const deep = [...functions.values()].filter(({ isHook }) => isHook).map((hook) => deepRule(hook, functions, lineAt)).filter(Boolean);
    const all = [...broken, ...deep];
    return all.filter(({ line, text: words }, at) => all.findIndex((other) => other.line === line && other.text === words) === at);
}

/** @returns {Map<string, Function>} */
function functionsIn(rows, types) {
    const functions = new Map();
    let current = null;
    let block = null;
    for (const row of rows) {
        const begin = FUNCTION.exec(row);
        if (begin) {
            const [, name, parameters, place] = begin;
            block = { to: [], isGuarded: false, places: [] };
            current = {
                name, isHook: HOOK.test(name), place: Number(place), parameters: countOf(parameters),
                blocks: new Map([["entry", block]]), calls: [], throughPointer: [], floating: [], stack: 0,
            };
            functions.set(name, current);
        } else if (row === "}") current = null;
        else if (current && LABEL.test(row)) {
            const [, label] = LABEL.exec(row);
            block = current.blocks.get(label) ?? { to: [], isGuarded: false, places: [] };
            current.blocks.set(label, block);
        } else if (current) read(row, current, block, types);
    }
    return functions;
}

function read(row, made, block, types) {
    const place = Number(/!dbg !(\d+)/.exec(row)?.[1] ?? 0);
    if (place) block.places.push(place);
    block.to.push(...[...row.matchAll(TARGET)].map(([, label]) => label));
    block.isGuarded ||= row.includes(GUARD);
    const called = CALLED.exec(row);
    if (called) made.calls.push({ name: called[1], place });
    else if (THROUGH_POINTER.test(row)) made.throughPointer.push(place);
    if (FLOATING.test(row)) made.floating.push(place);
    const allocated = ALLOCATED.exec(row);
    if (allocated) made.stack += bytesOf(allocated[1], types);
}

function* rulesOf({ name, blocks, throughPointer, floating, parameters, place }, lineAt) {
    for (const loop of unguardedLoops(blocks)) {
        const lines = loop.flatMap((label) => blocks.get(label).places.map(lineAt)).filter(Boolean);
        yield { line: Math.min(...lines, Infinity) === Infinity ? lineAt(place) : Math.min(...lines), text: `${name}() has a loop without LOOP_GUARD` };
    }
    if (throughPointer.length) yield { line: lineAt(throughPointer[0]), text: `${name}() calls through a pointer` };
    if (floating.length) yield { line: lineAt(floating.find(lineAt) ?? floating[0]), text: `${name}() computes with floating-point numbers` };
    if (parameters > PARAMETERS_MOST) yield { line: lineAt(place), text: `${name}() has ${parameters} parameters; Linux allows ${PARAMETERS_MOST}` };
}

/** @returns {string[][]} labels of the cycles without a guard, one for each block that begins one */
function unguardedLoops(blocks) {
    const follow = (label) => (blocks.get(label)?.to ?? []).filter((to) => blocks.has(to) && !blocks.get(to).isGuarded);
    const reached = (from) => {
        const seen = new Set();
        const left = follow(from);
        while (left.length) {
            const label = left.pop();
            if (seen.has(label)) continue;
            seen.add(label);
            left.push(...follow(label));
        }
        return seen;
    };
    const reach = new Map([...blocks.keys()].filter((label) => !blocks.get(label).isGuarded).map((label) => [label, reached(label)]));
    const done = new Set();
    const loops = [];
    for (const [label, seen] of reach) {
        if (!seen.has(label) || done.has(label)) continue;
        const loop = [...seen].filter((other) => reach.get(other)?.has(label));
        for (const other of loop) done.add(other);
        loops.push(loop);
    }
    return loops;
}

/** The deepest chain of calls of a hook: its stack, its frames, and whether it is recursive. */
function deepRule(hook, functions, lineAt) {
    let broken = null;
    const most = { stack: 0, frames: 0, chain: [] };
    const follow = (made, chain, stack) => {
        if (broken) return;
        const names = [...chain, made.name];
        const used = stack + Math.ceil(Math.max(made.stack, 1) / FRAME_BYTES) * FRAME_BYTES;
        if (used > most.stack) Object.assign(most, { stack: used, chain: names });
        most.frames = Math.max(most.frames, names.length);
        for (const { name, place } of made.calls) {
            const next = functions.get(name);
            if (next && names.includes(name)) broken = { line: lineAt(place), text: `recursion: ${[...names.slice(names.indexOf(name)), name].join(" > ")}` };
            else if (next) follow(next, names, used);
        }
    };
    follow(hook, [], 0);
    if (broken) return broken;
    const largest = most.chain.map((name) => functions.get(name)).sort((one, other) => other.stack - one.stack)[0];
    if (most.stack > STACK_BYTES) return { line: lineAt(largest.place), text: `${largest.name}() and what calls it take at least ${most.stack} bytes of stack, of ${STACK_BYTES}` };
    if (most.frames >= CALL_DEPTH) return { line: 0, text: `${hook.name.replace(HOOK, "")}() calls ${most.frames} deep; Linux allows ${CALL_DEPTH - 1}` };
    return null;
}

/** @returns {(node: number) => number} the policy's line of a location or function; 0: another file's */
function locations(rows, file) {
    const nodes = new Map();
    for (const row of rows) {
        const match = NODE.exec(row);
        if (!match) continue;
        const [, number, kind, fields] = match;
        const reference = (name) => Number(new RegExp(`\\b${name}: !(\\d+)`).exec(fields)?.[1] ?? 0);
        nodes.set(Number(number), {
            kind, line: Number(/\bline: (\d+)/.exec(fields)?.[1] ?? 0), scope: reference("scope"), file: reference("file"),
            inlinedAt: reference("inlinedAt"), name: /filename: "([^"]*)"/.exec(fields)?.[1] ?? "",
        });
    }
    const fileOf = (node) => (node ? (nodes.get(node.file)?.name.replace(/^\.\//, "") ?? fileOf(nodes.get(node.scope))) : "");
    const lineAt = (number) => {
        const node = nodes.get(number);
        if (!node) return 0;
        return fileOf(node) === file ? node.line : lineAt(node.inlinedAt);
    };
    return lineAt;
}

function bytesOf(type, types) {
    const array = /^\[(\d+) x (.+)\]$/.exec(type);
    if (array) return Number(array[1]) * bytesOf(array[2], types);
    if (/^<?\{.*\}>?$/.test(type)) return parts(type.replace(/^<?\{\s*|\s*\}>?$/g, "")).reduce((sum, part) => sum + bytesOf(part, types), 0);
    if (types.has(type)) return bytesOf(types.get(type), types);
    if (type.startsWith("ptr")) return POINTER_BYTES;
    if (type === "double") return 8;
    return Math.ceil(Number(/^i(\d+)$/.exec(type)?.[1] ?? 32) / 8);
}

/** @returns {string[]} what commas separate, outside of brackets */
function parts(text) {
    const all = [];
    let depth = 0;
    let begin = 0;
    for (let at = 0; at < text.length; at++) {
        if ("([{<".includes(text[at])) depth += 1;
        if (")]}>".includes(text[at])) depth -= 1;
        if (text[at] === "," && depth === 0) {
            all.push(text.slice(begin, at).trim());
            begin = at + 1;
        }
    }
    return text.trim() ? [...all, text.slice(begin).trim()] : all;
}

const countOf = (parameters) => parts(parameters).length;
