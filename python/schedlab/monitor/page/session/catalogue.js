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

/**
 * @param {any[]} policies @param {string} choice name or name:preset
 * @param {Record<string, number>} settings values of tunables
 * @returns {string} what is wrong with one of them; "": nothing
 */
export function wrongSetting(policies, choice, settings) {
    const [name, preset] = choice.split(":");
    const policy = policies.find((entry) => entry.name === name);
    const ofPreset = policy?.presets[preset]?.tunables ?? {};
    const tunables = Object.keys(ofPreset).length ? ofPreset : policy?.tunables ?? {};
    for (const [tunable, value] of Object.entries(settings)) {
        const known = Object.keys(tunables).join(", ");
        if (!Object.hasOwn(tunables, tunable)) return `${tunable}: unknown tunable of ${choice}; ${known ? `choose from ${known}` : "it has none"}`;
        const { minimum, maximum } = tunables[tunable];
        if (!Number.isInteger(value)) return `${tunable} of ${choice}: not a whole number; choose ${minimum} to ${maximum}`;
        if (value < minimum || value > maximum) return `${tunable} of ${choice}: ${value} is out of range; choose ${minimum} to ${maximum}`;
    }
    return "";
}
