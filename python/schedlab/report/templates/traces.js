// SPDX-License-Identifier: MIT
//
// On a click, opens a trace in Perfetto's page. If that page is unreachable, saves the file.
// Pages that were opened as files do not load this module, since Perfetto rejects their messages.

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
