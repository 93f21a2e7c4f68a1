// SPDX-License-Identifier: MIT
//
// For test_playground_labs.py: grades with the page's modules. Words: the module lab_grade.js, the simulator with one
// policy, and a file {reasons, cases: [{policy, module, tests}]}; prints the verdicts.

import { readFileSync } from "node:fs";

const [grader, simulator, file] = process.argv.slice(1);
const { gradeTest } = await import(grader);
const separate = await WebAssembly.compile(readFileSync(simulator));
const { reasons, cases } = JSON.parse(readFileSync(file, "utf8"));
const verdicts = [];
for (const { policy, module, tests } of cases) {
    const compiled = await WebAssembly.compile(Buffer.from(module, "base64"));
    verdicts.push(tests.map((test) => gradeTest(test, { policy, module: compiled, separate, reasons })));
}
console.log(JSON.stringify(verdicts));
