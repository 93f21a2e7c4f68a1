# SPDX-License-Identifier: MIT
"""Contrast as WCAG 2.1 defines it, for scripts that tests run in a page."""

from __future__ import annotations

CONTRAST_SCRIPT = """
const channels = colour => {
    const canvas = document.createElement('canvas').getContext('2d');
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return canvas.getImageData(0, 0, 1, 1).data;
};
const luminance = colour => {
    const [red, green, blue] = [...channels(colour)].slice(0, 3).map(value => {
        const part = value / 255;
        return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
};
const ground = element => {
    for (let at = element; at; at = at.parentElement) {
        const colour = getComputedStyle(at).backgroundColor;
        if (channels(colour)[3] === 255) return colour;
    }
    return 'white';
};
const contrast = (one, two) => {
    const [first, second] = [luminance(one), luminance(two)];
    return (Math.max(first, second) + 0.05) / (Math.min(first, second) + 0.05);
};
"""
"""Functions: contrast(one colour, another), ground(element): the colour behind it."""
