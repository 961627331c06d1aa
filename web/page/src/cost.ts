// The tab "Cost": how long a GPU would take, and where the time goes.

import { type Bar, bars, MOST_LINES, percent } from "./charts";
import { fill, h, select } from "./dom";
import type { Profile, ProfileResult } from "./protocol";

const time = (us: number): string => (us >= 1000 ? `${(us / 1000).toFixed(3)} ms` : `${us.toFixed(2)} µs`);

/** The clocks of a line's or an instruction's waves. */
interface Place {
  line: number;
  address: number;
  clocks: number;
  stalled: number;
  executed: number;
  stalls: Record<string, number>;
  rules: Set<string>;
}

/** The sums by line, or by instruction where there are no lines. */
function places(profile: Profile, byLine: boolean): Place[] {
  const sums = new Map<number, Place>();
  for (const row of profile.instructions) {
    const address = parseInt(row.address, 16);
    const key = byLine ? row.line : address;
    if (byLine && key === 0) continue;
    const sum = sums.get(key) ?? {
      line: byLine ? row.line : 0,
      address,
      clocks: 0,
      stalled: 0,
      executed: 0,
      stalls: {},
      rules: new Set<string>(),
    };
    sum.clocks += row.clocks;
    sum.stalled += row.stalled;
    sum.executed = Math.max(sum.executed, row.executed);
    for (const [name, clocks] of Object.entries(row.stalls)) sum.stalls[name] = (sum.stalls[name] ?? 0) + clocks;
    for (const remark of row.remarks) sum.rules.add(remark.rule);
    sums.set(key, sum);
  }
  return [...sums.values()];
}

const largest = (counts: Record<string, number>): string | undefined =>
  Object.entries(counts)
    .filter(([, value]) => value > 0)
    .sort((a, b) => b[1] - a[1])[0]?.[0];

/** Shows the prediction. `onPlace` goes to a line, or to an address of code without lines; `onDevice` predicts again. */
export function showCost(
  panel: HTMLElement,
  result: ProfileResult,
  onPlace: (place: { line: number; pc: number }) => void,
  onDevice: (name: string) => void,
): void {
  const { profile, devices, fault } = result;
  if (!profile) {
    fill(panel, h("p", {}, `No prediction: the run ended with a fault, ${fault?.kind ?? "unknown"}.`));
    return;
  }
  const total = Math.max(
    1e-9,
    profile.instructions.reduce((sum, row) => sum + row.clocks, 0),
  );
  const stalled = Object.values(profile.stalls).reduce((a, b) => a + b, 0);
  const share = (label: string, value: number): Bar => ({ label, value, text: percent(value) });
  const waits = Object.entries(profile.stalls).map(([name, clocks]) => share(name, clocks / total));
  const busy = [
    ...Object.entries(profile.units).map(([name, value]) => share(name, value)),
    ...profile.levels.map(({ name, busy }) => share(name, busy)),
  ];
  const visible = (list: Bar[]) => list.filter((b) => b.value > 0.001).sort((a, b) => b.value - a.value);
  const byLine = profile.instructions.some((row) => row.line > 0);
  const all = places(profile, byLine);
  const kept = new Set([...all].sort((a, b) => b.clocks - a.clocks).slice(0, MOST_LINES));
  const lines = all
    .filter((place) => kept.has(place))
    .map((place): Bar => {
      const name = byLine ? `line ${place.line}` : `0x${place.address.toString(16)}`;
      const target = byLine ? { line: place.line, pc: 0 } : { line: 0, pc: place.address };
      const reason = place.stalled > 0 ? `, ${largest(place.stalls) ?? ""}` : "";
      const each = (place.clocks / Math.max(1, place.executed)).toFixed(1);
      const rules = place.rules.size ? `; ${[...place.rules].join(", ")}` : "";
      return {
        label: h("button", { type: "button", class: "link", onclick: () => onPlace(target) }, name),
        value: place.clocks / total,
        text: `${percent(place.clocks / total)}, ${each} clocks × ${place.executed.toLocaleString("en")}${reason}${rules}`,
      };
    });
  const { microseconds, occupancy, sample, bound } = profile;
  const names = devices.map(({ name, title }): [string, string] => [name, title]);
  fill(
    panel,
    h("p", {}, select("Device", names, profile.device, onDevice)),
    h(
      "p",
      { class: "summary", "data-test": "cost" },
      `${time(microseconds.predicted)} predicted (${time(microseconds.low)} to ${time(microseconds.high)}), ` +
        `${Math.round(profile.clocks).toLocaleString("en")} clocks and ${time(microseconds.launch)} of launch; ` +
        `bound by ${bound.by}: ${bound.why}.`,
    ),
    h("p", { class: "dim" }, `${profile.label}.`),
    h(
      "p",
      {},
      `${occupancy.waves_per_simd} of ${occupancy.most} waves a SIMD, limited by ${occupancy.limit}; ` +
        `${sample.workgroups} of ${sample.of_workgroups} workgroups sampled` +
        (sample.error ? `, sampling error ${percent(sample.error)}.` : "."),
    ),
    profile.unclassified.length
      ? h("p", {}, `Without a class, so with the default costs: ${profile.unclassified.join(", ")}.`)
      : null,
    bars(
      "Clocks",
      `The time of waves by ${byLine ? "line" : "instruction"}, with the reason for most of its stalls, and remarks.` +
        (kept.size < all.length ? ` The ${kept.size} longest of ${all.length} are shown.` : ""),
      [byLine ? "line" : "address", "share, clocks × executions"],
      lines,
    ),
    bars("Waves", "What waves do.", ["state", "share"], [share("issue", 1 - stalled / total), ...visible(waits)], 1),
    bars("Busy", "How long the units and caches are busy.", ["unit", "share"], visible(busy), 1),
  );
}
