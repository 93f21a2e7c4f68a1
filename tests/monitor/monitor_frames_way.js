// SPDX-License-Identifier: MIT
//
// A way to the stand-in's server, which makes frames itself: a socket, in place of a session in a worker.

/**
 * @param {(message: any) => void} take is given each message that comes
 * @param {() => void} lose is told when there is no way any more
 * @returns {{send: (message: any) => void, isOpen: () => boolean, close: () => void}}
 */
export function openWay(take, lose) {
    const address = new URL("socket", location.href);
    address.protocol = location.protocol.replace("http", "ws");
    address.search = location.search;
    const socket = new WebSocket(address);
    socket.addEventListener("message", (event) => take(JSON.parse(event.data)));
    socket.addEventListener("close", lose);
    return {
        send: (message) => socket.send(JSON.stringify(message)),
        isOpen: () => socket.readyState === WebSocket.OPEN,
        close: () => socket.close(),
    };
}
