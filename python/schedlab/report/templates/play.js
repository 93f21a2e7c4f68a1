// SPDX-License-Identifier: MIT
//
// Passes a run's trace to the page in the frame on request (page/embedding.js). The target origin is
// "*", since pages that were opened as files have no origin.

const frame = document.querySelector("iframe");

async function unpacked(base64) {
    const packed = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).arrayBuffer();
}

const recorded = () => JSON.parse(document.getElementById("recording").textContent);

document.getElementById("save").addEventListener("click", async (event) => {
    const link = event.currentTarget;
    if (link.href.startsWith("blob:")) return;
    event.preventDefault();
    link.href = URL.createObjectURL(new Blob([await unpacked(recorded().trace)]));
    link.click();
});

// Pages that were opened as files cannot load modules.
if (location.protocol !== "file:") import("../traces.js");

addEventListener("message", async ({ source, data }) => {
    if (source !== frame.contentWindow || data !== "schedlab: ready for a recording") return;
    const { title, policy, trace } = recorded();
    const file = await unpacked(trace);
    frame.contentWindow.postMessage({ title, policy, file }, "*", [file]);
});
