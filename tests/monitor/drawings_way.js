// SPDX-License-Identifier: MIT
//
// A way to the systems that monitor_drawings.js makes up: by the socket that it puts in place of the browser's.

/** See python/schedlab/monitor/page/way.js. */
export function openWay(take, lose) {
    const socket = new WebSocket(location.href);
    socket.addEventListener("message", (event) => take(JSON.parse(event.data)));
    socket.addEventListener("close", lose);
    return { send: (message) => socket.send(JSON.stringify(message)), isOpen: () => true, close: () => socket.close() };
}
