// SPDX-License-Identifier: MIT
//
// The policies' descriptions, as in `./schedlab policies --json`.

const SHARES = { tickets: 2, weight: 3, nice: 4, groups: 9 };

/** @param {any} policy as build/policy_list lists it @returns {any} with its lists by name */
export function asCatalogue(policy) {
    const byName = (entries) => Object.fromEntries((entries ?? []).map((entry) => [entry.name, entry]));
    const presets = policy.presets.map((preset) => ({ ...preset, tunables: byName(preset.tunables) }));
    return { ...policy, tunables: byName(policy.tunables), presets: byName(presets) };
}

/** @param {any[]} policies @param {string} choice name or name:preset @returns {number} enum attribute_kind, or 0 */
export function sharesBy(policies, choice) {
    const [name, preset] = choice.split(":");
    const known = policies.find((policy) => policy.name === name);
    return SHARES[known?.presets[preset]?.shares_by ?? known?.shares_by] ?? 0;
}
