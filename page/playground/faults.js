// SPDX-License-Identifier: MIT
//
// Where a policy's fault is in its source.

const CODE = /\w/; // a brace alone explains nothing

/**
 * @param {import("./workers.js").Requests} compiler @param {import("./runner.js").Fault} fault
 * @param {any} module the compiled policy; without lines, the place is the hook's @param {string} source
 * @returns {Promise<{line: number, text: string}>} `line` 0: not known; `text`: with the hook's name
 */
export async function placeOf(compiler, { hook, text, offsets, isLoop }, module, source) {
    const lines = offsets.length && module instanceof Uint8Array ? await compiler.ask({ locate: { module, offsets, isLoop } }) : [];
    const rows = source.split("\n");
    const known = lines.filter(Boolean);
    return { line: known.find((line) => CODE.test(rows[line - 1])) ?? known[0] ?? lineOfHook(source, hook), text: `${hook ? `${hook}(): ` : ""}${text}` };
}

/** @param {string | null} hook null: none @returns {number} the line where it begins, or where the definition does if the policy lacks it; 0: not known */
function lineOfHook(source, hook) {
    if (hook === null) return 0;
    const name = hook && new RegExp(`\\.${hook}\\s*=\\s*(\\w+)`).exec(source)?.[1];
    const begin = new RegExp(name ? `^(?=\\w).*\\b${name}\\(` : "^POLICY_DEFINITION");
    return source.split("\n").findIndex((text) => begin.test(text)) + 1;
}
