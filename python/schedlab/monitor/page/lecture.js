// SPDX-License-Identifier: MIT
//
// Lecture mode: four panels in large letters. It is stored for the next visit, as panels are.

import { lettersChanged } from "./drawing/paint.js";
import { announce } from "./elements.js";
import { allStates, touch } from "./store.js";

const LECTURE_KEY = "schedlab-lecture";

/** @returns {boolean} */
export function isLecture() {
    return document.body.dataset.lecture === "on";
}

/** @param {boolean} on @param {boolean} [kept] also for the next visit */
export function setLecture(on, isStored = true) {
    document.body.dataset.lecture = on ? "on" : "off";
    if (isStored) localStorage.setItem(LECTURE_KEY, on ? "on" : "off");
    announce(on ? "Lecture: four panels in large letters." : "All panels.");
    lettersChanged();
    for (const { id } of allStates()) touch(id);
}

/** Restores the stored mode. */
export function restoreLecture() {
    document.body.dataset.lecture = localStorage.getItem(LECTURE_KEY) === "on" ? "on" : "off";
}
