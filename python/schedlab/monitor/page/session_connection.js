// SPDX-License-Identifier: MIT
//
// The connection to the server: by a session in a worker, which makes frames of the server's messages. The
// standalone page replaces it (page/session_connection.js).

/**
 * @param {(message: any) => void} take receives each message
 * @param {() => void} lose is called when the connection has ended
 * @returns {{send: (message: any) => void, isOpen: () => boolean, close: () => void}}
 */
export function openSession(take, lose) {
    const address = new URL("socket", location.href);
    address.protocol = location.protocol.replace("http", "ws");
    address.search = location.search;
    const worker = new Worker("session/served_worker.js", { type: "module" });
    let open = true;
    const close = () => {
        open = false;
        worker.terminate();
    };
    worker.addEventListener("message", ({ data }) => {
        if (data.type !== "lost") return take(data);
        close();
        lose();
    });
    worker.addEventListener("error", (event) => console.error(event.message));
    worker.postMessage({ address: address.href });
    return { send: (message) => worker.postMessage(message), isOpen: () => open, close };
}
