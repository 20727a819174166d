#pragma once

#include <string_view>

namespace posenc::cli {

/// Follows the reader's light or dark mode; on paper always dark on light, without page breaks in tables or figures.
inline constexpr std::string_view kReportStyle = R"css(
:root { color-scheme: light dark; --ink: #1d2229; --paper: #fdfdfb; --faint: #5a6370; --line: #d9dde3; --card: #f4f5f2;
  --accent: #0b5fa5; --warn: #9a5200; --good: #0a7a43; --bad: #b3372b; }
@media (prefers-color-scheme: dark) { :root { --ink: #e7e9ec; --paper: #14171b; --faint: #a0a9b5; --line: #343b45;
  --card: #1c2127; --accent: #7cc0ff; --warn: #ffb861; --good: #5fd39a; --bad: #ff8a7d; }
  figure img { filter: invert(0.92) hue-rotate(180deg); } }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0 auto; max-width: 66rem; padding: 2.5rem 1.5rem 4rem; background: var(--paper); color: var(--ink);
  font: 1.03rem/1.6 "Source Serif 4", Charter, Georgia, serif; }
h1, h2, summary, nav, th, caption, figcaption, dt, footer { font-family: system-ui, "Helvetica Neue", Arial, sans-serif; }
h1 { font-size: clamp(1.7rem, 4vw, 2.5rem); line-height: 1.12; letter-spacing: -0.015em; margin: 0 0 .6rem; }
h2 { font-size: 1.32rem; line-height: 1.25; margin: 0 0 .8rem; letter-spacing: -0.005em; }
p { margin: 0 0 .9rem; }
.summary { font-size: 1.15rem; color: var(--faint); max-width: 40rem; }
nav ol { margin: 1.2rem 0 0; padding: 0; list-style: none; columns: 2; column-gap: 2.5rem; counter-reset: part; }
nav li { counter-increment: part; break-inside: avoid; padding: .12rem 0; font-size: .93rem; }
nav li::before { content: counter(part) ". "; color: var(--faint); }
a { color: var(--accent); text-decoration: none; }
a:hover { text-decoration: underline; }
section { margin-top: 3rem; padding-top: 1.5rem; border-top: 1px solid var(--line); }
.prose { max-width: 38rem; }
.beside { display: grid; grid-template-columns: minmax(17rem, 4fr) minmax(0, 6fr); gap: 0 2.2rem; align-items: start; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; margin: .3rem 0 1.1rem; font-variant-numeric: tabular-nums; font-size: .88rem;
  font-family: system-ui, "Helvetica Neue", Arial, sans-serif; }
caption { text-align: left; padding-bottom: .25rem; color: var(--faint); white-space: nowrap; }
th, td { padding: .2rem .65rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
th { font-weight: 600; }
thead th { color: var(--faint); font-weight: 500; vertical-align: bottom; }
tbody th, thead th:first-child { text-align: left; }
table.key { background: var(--card); border-radius: 6px; width: 100%; }
table.key thead th { white-space: normal; }
table.key:not(.marks) th, table.key:not(.marks) td { padding: .2rem .45rem; }
td.good { color: var(--good); } td.bad { color: var(--bad); }
table.marks { table-layout: fixed; width: auto; background: none; }
table.marks th, table.marks td { padding: .16rem 0; text-align: center; width: 2.35rem; }
table.marks tbody th, table.marks thead th:first-child { text-align: left; width: 7rem; padding-right: .4rem; }
table.marks thead span { writing-mode: vertical-rl; transform: rotate(180deg); padding: .2rem 0; }
p.formula, code { font-family: ui-monospace, "DejaVu Sans Mono", Menlo, monospace; font-size: .87em; }
p.formula { overflow-x: auto; white-space: nowrap; }
p.note { border-left: 3px solid var(--warn); padding: .1rem 0 .1rem .8rem; font-size: .95rem; max-width: 38rem; }
details { border: 1px solid var(--line); border-radius: 6px; margin: .5rem 0; background: var(--card); }
details + details { margin-top: -1px; }
summary { cursor: pointer; padding: .5rem .9rem; font-size: .95rem; font-weight: 600; }
summary::marker { color: var(--accent); }
.step { padding: .2rem .9rem .6rem; }
.tables { display: flex; flex-wrap: wrap; gap: 0 2rem; align-items: flex-start; }
.tables > .wide { max-width: 100%; }
.tables > p, .tables > dl { flex-basis: 100%; }
dl { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: .15rem 1.2rem; margin: .4rem 0 1rem;
  font-size: .93rem; }
dd { margin: 0; font-variant-numeric: tabular-nums; }
dl.legend { columns: auto; max-width: 52rem; }
dl.legend dt { font-weight: 600; }
dl.commands dt, figcaption code { font-family: ui-monospace, "DejaVu Sans Mono", Menlo, monospace; font-size: .85em; }
figure { margin: 1.6rem 0; }
figure img { display: block; width: 100%; height: auto; max-width: 56rem; border-radius: 6px; }
figcaption { font-size: .9rem; color: var(--faint); max-width: 46rem; margin-top: .45rem; line-height: 1.45; }
.on-paper { display: none; }
footer { margin-top: 3rem; color: var(--faint); font-size: .85rem; }
@media (max-width: 40rem) {
  body { padding: 1.2rem 1rem 3rem; font-size: 1rem; }
  nav ol { columns: 1; }
  .beside { display: block; }
  th, td { padding: .18rem .42rem; }
  table { font-size: .82rem; }
  table.key:not(.marks) { font-size: .7rem; }
  table.key:not(.marks) th, table.key:not(.marks) td { white-space: normal; padding: .18rem .2rem; }
  table.marks th, table.marks td { width: 1.32rem; font-size: .78rem; }
  table.marks tbody th, table.marks thead th:first-child { width: 5.4rem; }
  dl { grid-template-columns: 1fr; gap: 0; }
  dl dd { margin: 0 0 .45rem; color: var(--faint); }
  caption { white-space: normal; }
}
@page { margin: 16mm 15mm; }
@media print {
  html { font-size: 10pt; }
  :root { --ink: #000; --paper: #fff; --faint: #333; --line: #aaa; --card: #fff; --accent: #000; --warn: #555;
    --good: #000; --bad: #000; }
  figure img { filter: none; max-height: 105mm; width: auto; max-width: 100%; }
  body { max-width: none; padding: 0; font-size: 10pt; line-height: 1.42; }
  nav, details { display: none; }
  .on-paper { display: block; color: #333; font-size: 9pt; }
  section { margin-top: 1.1rem; padding-top: .8rem; }
  h2 { break-after: avoid; } table, figure, dl, p.note, section:has(> dl.commands) { break-inside: avoid; }
  .wide { overflow: visible; } .beside { display: block; } .prose { max-width: none; }
  table.key { width: auto; }
  table { font-size: 8pt; } th, td { padding: .1rem .35rem; }
  table.marks th, table.marks td { width: 8mm; }
}
)css";

}  // namespace posenc::cli
