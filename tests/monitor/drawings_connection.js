// SPDX-License-Identifier: MIT
//
// A way to the invented systems of monitor_drawings.js: through the socket that replaces the
// browser's.

/** See python/schedlab/monitor/page/session_connection.js. */
export function openSession(take, lose) {
    const socket = new WebSocket(location.href);
    socket.addEventListener("message", (event) => take(JSON.parse(event.data)));
    socket.addEventListener("close", lose);
    return { send: (message) => socket.send(JSON.stringify(message)), isOpen: () => true, close: () => socket.close() };
}
