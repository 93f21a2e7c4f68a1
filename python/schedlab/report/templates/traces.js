// SPDX-License-Identifier: MIT
//
// A click on a trace for Perfetto hands it over to Perfetto's page; where that cannot be reached, it saves the file,
// as it does without this module: Perfetto takes nothing of pages that were opened as files.

import { openInPerfetto } from "./perfetto.js";

const TRACES = 'a[href$=".perfetto-trace.gz"]';

async function load({ href }) {
    const fileName = href.slice(href.lastIndexOf("/") + 1);
    const answer = await fetch(href);
    if (!answer.ok) throw new Error(`${answer.status} ${answer.statusText}`);
    return { buffer: await answer.arrayBuffer(), title: `schedlab: ${document.title}, ${fileName}`, fileName };
}

document.addEventListener("click", (event) => {
    const link = event.target.closest?.(TRACES);
    if (!link) return;
    event.preventDefault();
    openInPerfetto(() => load(link)).catch(() => location.assign(link.href));
});
