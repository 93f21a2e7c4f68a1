// SPDX-License-Identifier: MIT
//
// Grades by a lab's tests in this worker.
//
// The first message: {separate}, a module of page/page.mk. Then requests: {id, test, policy, module, reasons}.

import { gradeTest } from "./lab_grade.js";

let separate;

addEventListener("message", async ({ data }) => {
    if (!separate) {
        ({ separate } = data);
        return;
    }
    const { id, test, policy, module, reasons } = data;
    try {
        const compiled = await WebAssembly.compile(module);
        postMessage({ id, result: gradeTest(test, { policy, module: compiled, separate, reasons }) });
    } catch (error) {
        postMessage({ id, error: error.message });
    }
});
