// SPDX-License-Identifier: MIT
//
// For test_page_asked.py: what a session answers.

import { perform } from "../../python/schedlab/monitor/page/session/commands.js";

globalThis.asked = async (letters, message) => {
    const systems = letters.map((letter) => ({ letter, info: {}, explain: () => letter }));
    try {
        return { result: await perform({ systems, pace: 1 }, message) };
    } catch (error) {
        return { refused: error.message };
    }
};
