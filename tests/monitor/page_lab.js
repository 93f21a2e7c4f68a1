// SPDX-License-Identifier: MIT
//
// The way of the page that is tested: to the page's own session, with a simulator, in a worker. All that the page
// asks is recorded, and a test may answer instead of the session.

/** What a test sees and changes. */
const lab = {
    /** @type {any[]} all that the page has asked */
    asked: [],
    /** @type {Record<string, string>} messages by request: the request is refused */
    refusals: {},
    /** @type {Record<string, any>} results by request, instead of the session's */
    answers: {},
    /** Hellos and frames go through it. @type {(message: any) => any} null: it is not passed on */
    touch: (message) => message,
    /** True if there is a session to connect to. */
    isThere: true,
};
window.lab = lab;

/** See python/schedlab/monitor/page/session_connection.js. */
export function openSession(take, lose) {
    const worker = lab.isThere ? new Worker("session/worker.js", { type: "module" }) : null;
    let open = Boolean(worker);
    const close = () => {
        if (open) worker.terminate();
        open = false;
    };
    lab.lose = () => {
        close();
        lose();
    };
    if (!worker) setTimeout(lose);
    lab.say = (message) => worker.postMessage(message);
    lab.show = take;
    worker?.addEventListener("message", ({ data }) => {
        if (data.type === "ready") return worker.postMessage({ do: "begin", ...beginning() });
        const told = ["hello", "frame"].includes(data.type) ? lab.touch(data) : data;
        if (told) take(told);
    });
    if (worker) supply(worker);
    const send = (message) => {
        const { id, do: command } = message;
        lab.asked.push(message);
        if (lab.refusals[command]) setTimeout(() => take({ type: "answer", id, ok: false, error: lab.refusals[command] }));
        else if (command in lab.answers) setTimeout(() => take({ type: "answer", id, ok: true, result: lab.answers[command] }));
        else worker.postMessage(message);
    };
    return { send, isOpen: () => open, close };
}

async function supply(worker) {
    const [module, palette] = await Promise.all([fetch("machine.wasm"), fetch("palette.json")]);
    worker.postMessage({ module: await module.arrayBuffer(), palette: await palette.json() });
}

function beginning() {
    return JSON.parse(new URLSearchParams(location.search).get("begin"));
}
