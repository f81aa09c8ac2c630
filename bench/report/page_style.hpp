// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace troupe::bench {

/// The style of a report's page. Colours of curves: c0 floor, c1 troupe, c2 peer, c3 to c7 the rest. Each has a contrast of at least 3 to the
/// ground in both themes; marks and dashes tell curves apart where colours do not.
inline constexpr const char* page_style = R"css(
:root {
  color-scheme: light dark;
  --ground: #ffffff; --card: #f6f7f9; --text: #1b1f24; --quiet: #565e69; --line: #d5d9df; --grid: #e3e6ea;
  --good: #1a6e3c; --bad: #b3261e; --bad-ground: #fdeceb;
  --s0: #646c78; --s1: #0a5cc2; --s2: #c24a00; --s3: #0a9a5c; --s4: #6d0a74; --s5: #5a2d0c; --s6: #d9388f; --s7: #1490b0;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #14171b; --card: #1c2026; --text: #e8eaed; --quiet: #a6adb8; --line: #3a414b; --grid: #2b3139;
    --good: #6fd39a; --bad: #ff8f85; --bad-ground: #3a1f1f;
    --s0: #9aa2ae; --s1: #62aaff; --s2: #ff9a4d; --s3: #3fbf86; --s4: #f5e642; --s5: #f0487a; --s6: #74f2fb; --s7: #8d7dff;
  }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 80rem; padding: 1.25rem 1.5rem 3rem; background: var(--ground); color: var(--text);
  font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", "Liberation Sans", sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .75rem; }
h2 { font-size: 1.3rem; margin: 2.25rem 0 .5rem; padding-top: .75rem; border-top: 1px solid var(--line); }
h3 { font-size: 1.05rem; line-height: 1.3; margin: 0 0 .25rem; }
p { margin: .25rem 0 .75rem; max-width: 50rem; }
a { color: var(--s1); }
nav { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; margin: 1rem 0; }
.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 17rem), 1fr)); gap: .5rem 1.5rem; margin: 1rem 0;
  padding: .9rem 1.1rem; background: var(--card); border: 1px solid var(--line); border-radius: .5rem; }
.facts div { min-width: 0; overflow-wrap: anywhere; }
.facts dt { color: var(--quiet); font-size: .85rem; }
.facts dd { margin: 0; }
.rough { padding: .6rem 1rem; border-left: .3rem solid var(--s2); background: var(--card); }
table { border-collapse: collapse; width: 100%; font-size: .92rem; }
th { text-align: left; color: var(--quiet); font-weight: 600; }
th, td { padding: .38rem .6rem; border-bottom: 1px solid var(--grid); vertical-align: top; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
tr.group th { padding-top: 1.2rem; color: var(--text); font-size: 1.02rem; border-bottom: 1px solid var(--line); }
tr.group span { color: var(--quiet); font-weight: 400; font-size: .85rem; margin-left: .6rem; }
td.name { overflow-wrap: anywhere; width: 46%; }
td.name code { font-size: .92rem; }
td small { display: block; color: var(--quiet); font-size: .84rem; line-height: 1.35; }
td.ok { color: var(--good); white-space: nowrap; }
td.short { color: var(--bad); font-weight: 700; white-space: nowrap; }
tr.is-short { background: var(--bad-ground); }
.plots { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 23.5rem), 1fr)); gap: 1.5rem; margin-top: 1rem; }
figure { margin: 0; padding: .9rem 1rem; min-width: 0; max-width: 36rem; background: var(--card); border: 1px solid var(--line);
  border-radius: .5rem; display: flex; flex-direction: column; }
figure p { color: var(--quiet); font-size: .92rem; line-height: 1.4; }
figure > svg { display: block; width: 100%; height: auto; }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: .2rem 1.1rem; margin: 0 0 .6rem; padding: 0; font-size: .9rem; }
.legend li { display: flex; align-items: center; gap: .45rem; }
.legend svg { flex: none; width: 32px; height: 14px; }
svg text { font-size: 12px; fill: var(--quiet); }
svg text.title { fill: var(--text); }
svg text.default { fill: var(--text); font-weight: 600; }
.grid { stroke: var(--grid); }
.axis { stroke: var(--quiet); }
line.default { stroke: var(--text); stroke-width: 1.3; stroke-dasharray: 4 3; }
.c0 { --c: var(--s0); } .c1 { --c: var(--s1); } .c2 { --c: var(--s2); } .c3 { --c: var(--s3); } .c4 { --c: var(--s4); }
.c5 { --c: var(--s5); } .c6 { --c: var(--s6); } .c7 { --c: var(--s7); }
.curve path { fill: none; stroke: var(--c); stroke-width: 1.8; stroke-linejoin: round; }
.c1 path { stroke-width: 2.6; }
.mark { fill: var(--c); stroke: var(--card); }
.hollow { fill: var(--card); stroke: var(--c); stroke-width: 1.6; }
.band { fill: var(--c); opacity: .2; }
.whisker { stroke: var(--c); stroke-width: 2; }
.hit { fill: transparent; }
.hit:hover { fill: var(--c); fill-opacity: .25; }
details { margin-top: auto; padding-top: .5rem; font-size: .9rem; overflow-x: auto; }
summary { cursor: pointer; color: var(--quiet); }
footer { margin-top: 2.5rem; color: var(--quiet); font-size: .9rem; }
@media (max-width: 46rem) {
  body { padding: 1rem .8rem 2rem; }
  h1 { font-size: 1.4rem; }
  figure { padding: .8rem .6rem; }
}
@media (max-width: 60rem) {
  .ratios, .ratios tbody, .ratios tr.group, .ratios tr.group th { display: block; }
  .ratios thead { display: none; }
  .ratios tr.group span { display: block; margin-left: 0; }
  .ratios tr.row { display: grid; grid-template-columns: repeat(5, minmax(0, 1fr)); padding: .5rem 0; border-bottom: 1px solid var(--grid); }
  .ratios td { border: 0; padding: .1rem .3rem; overflow-wrap: anywhere; }
  .ratios td.name { grid-column: 1 / 5; grid-row: 1; width: auto; }
  .ratios td.ok, .ratios td.short { grid-column: 5; grid-row: 1; }
  .ratios td.n { text-align: left; white-space: normal; font-size: .86rem; }
  .ratios td.unit { grid-column: 1 / -1; color: var(--quiet); }
  .ratios td.unit::before { content: "unit: "; }
  .ratios td[data-label]::before { content: attr(data-label); display: block; color: var(--quiet); font-size: .8rem; }
}
@media print { details { display: none; } figure { break-inside: avoid; } }
)css";

}  // namespace troupe::bench
