// The numbers of a figure in code: numpy and torch where a formula gives them in a few lines, C++ always, by the library.

import type { Scheme } from './core';

type Request = { kind: string; schemes?: Scheme[]; zoom?: { from: number; to: number }; at?: number; key?: number; shift?: number; trained?: number; factor?: number; table?: object; [field: string]: unknown };
export type Code = { language: string; text: string };

// --- Python: `y` holds the numbers that are drawn -----------------------------------------------------------------

const size = (scheme: Scheme): number => Number(scheme.width ?? scheme.dims ?? 64);
const base = (scheme: Scheme): number => Number(scheme.base ?? 10_000);
// Angles [positions, pairs] of plain sinusoids and plain RoPE.
const isWaves = (scheme: Scheme): boolean => ['sinusoidal', 'rope'].includes(scheme.scheme) && Object.keys(scheme).every((field) => ['scheme', 'width', 'dims', 'base', 'layout'].includes(field));
const frequencies = (scheme: Scheme): string => `d, base = ${size(scheme)}, ${base(scheme).toFixed(1)}\nw = base ** (-np.arange(0, d, 2) / d)            # radians per position, for each pair`;
const isApart = (scheme: Scheme): boolean => scheme.layout === 'sin-cos' || scheme.layout === 'halves';
// A row for each position; RoPE has its cosines, then its sines.
const rows = (scheme: Scheme): string => scheme.scheme === 'rope' ? 'table = np.concatenate([np.cos(angle), np.sin(angle)], -1)'
  : isApart(scheme) ? 'table = np.concatenate([np.sin(angle), np.cos(angle)], -1)' : 'table = np.stack([np.sin(angle), np.cos(angle)], -1).reshape(len(p), d)';
const slopes = (scheme: Scheme): string | undefined => {
  const heads = Number(scheme.heads ?? 8);
  return Number.isInteger(Math.log2(heads)) && Object.keys(scheme).every((field) => ['scheme', 'heads'].includes(field)) ? `slopes = 2.0 ** (-8 / ${heads} * np.arange(1, ${heads + 1}))` : undefined;
};

const kinds: { [kind: string]: (request: Request, scheme: Scheme) => string[] | undefined } = {
  waves: ({ zoom }, scheme) => [frequencies(scheme), `p = np.arange(${zoom!.from}, ${zoom!.to})`, 'y = np.sin(np.outer(p, w))                        # a wave for each pair'],
  heatmap: ({ zoom }, scheme) => [frequencies(scheme), `p = np.arange(${zoom!.from}, ${zoom!.to})`, 'angle = np.outer(p, w)', rows(scheme), 'y = table'],
  fingerprint: ({ at }, scheme) => [frequencies(scheme), `p = np.arange(${at}, ${at! + 1})`, 'angle = np.outer(p, w)', rows(scheme), 'y = table[0]'],
  phasors: ({ at, key, shift }, scheme) => [frequencies(scheme), `p = np.array([${at}${key !== undefined ? `, ${key}` : shift ? `, ${at! + shift}` : ''}])`, 'angle = np.outer(p, w)', 'y = np.stack([np.cos(angle), np.sin(angle)], -1)    # the tip of each hand'],
  rotation: ({ shift }, scheme) => isApart(scheme) ? undefined : [frequencies(scheme), `k = ${shift ?? 1}`, 'c, s = np.cos(k * w), np.sin(k * w)', 'y = np.zeros((d, d))', 'i = np.arange(0, d, 2)',
    scheme.scheme === 'rope' ? 'y[i, i], y[i, i + 1], y[i + 1, i], y[i + 1, i + 1] = c, -s, s, c' : 'y[i, i], y[i, i + 1], y[i + 1, i], y[i + 1, i + 1] = c, s, -s, c'],
  dots: ({ zoom, numerics, dtype }, scheme) => scheme.scheme === 'rope' || (numerics ?? 'exact') !== 'exact' || (dtype ?? 'f64') !== 'f64' ? undefined
    : [frequencies(scheme), `p = np.arange(${zoom!.from}, ${zoom!.to})`, 'angle = np.outer(p, w)', rows(scheme), 'y = table @ table.T                                # m down, n across'],
  similarity: ({ zoom, numerics, dtype }, scheme) => (numerics ?? 'exact') !== 'exact' || (dtype ?? 'f64') !== 'f64' ? undefined
    : [frequencies(scheme), `p = np.arange(${zoom!.from}, ${zoom!.to})`, 'angle = np.outer(p, w)', rows(scheme), 'y = table @ table.T / (d / 2)                      # every row has the norm √(d/2)'],
  decay: ({ zoom }, scheme) => [frequencies(scheme), `distance = np.arange(${zoom!.from}, ${zoom!.to})`, 'y = np.cos(np.outer(distance, w)).mean(1)          # of a query and a key that agree'],
  scaling: ({ schemes, factor }, scheme) => schemes?.length !== 1 ? undefined : [frequencies(scheme), `factor = ${Number(factor ?? 8).toFixed(1)}`, 'wavelength = 2 * np.pi / w', 'linear = np.ones(d // 2) / factor                   # relative to w', 'ntk = factor ** (-np.arange(0, d, 2) / (d - 2))     # fast pairs keep their frequency', 'y = np.stack([wavelength, linear, ntk])'],
};
const biases: { [kind: string]: (request: Request) => string[] } = {
  decay: ({ zoom }) => [`distance = np.arange(${zoom!.from}, ${zoom!.to})`, 'y = -np.outer(slopes, distance)                    # a line for each head'],
  bias: ({ zoom }) => [`distance = np.arange(0, ${zoom!.to - zoom!.from})`, 'y = -np.outer(slopes, distance)                    # a line for each head'],
};

function numpy(request: Request): string | undefined {
  const scheme = request.schemes?.[0];
  if (!scheme || request.table || request.compare) return undefined;
  if (scheme.scheme === 'alibi') {
    const first = slopes(scheme), rest = biases[request.kind]?.(request);
    return first && rest ? ['import numpy as np', first, ...rest].join('\n') : undefined;
  }
  if (!isWaves(scheme)) return undefined;
  const lines = kinds[request.kind]?.(request, scheme);
  return lines ? ['import numpy as np', ...lines].join('\n') : undefined;
}

// The same functions of torch, in float64.
const torch = (text: string): string => text
  .replace('import numpy as np', 'import torch')
  .replace(/np\.arange\(([^()]*)\)/g, 'torch.arange($1, dtype=torch.float64)')
  .replace(/i = torch\.arange\((.*), dtype=torch\.float64\)/, 'i = torch.arange($1)')
  .replace(/np\.array\(\[([^\]]*)\]\)/g, 'torch.tensor([$1], dtype=torch.float64)')
  .replace(/np\.(zeros|ones)\((.*?)\)( |$)/gm, 'torch.$1($2, dtype=torch.float64)$3')
  .replaceAll('np.concatenate', 'torch.cat')
  .replaceAll('np.pi', 'torch.pi')
  .replaceAll('np.', 'torch.');

// --- C++: any figure ---------------------------------------------------------------------------------------------

const fields: { [field: string]: (value: any) => string | undefined } = {
  schemes: (list) => `.schemes = {${list.map((one: Scheme) => `{scheme_from_json(R"(${JSON.stringify(one)})")}`).join(', ')}}`,
  zoom: ({ from, to }) => `.zoom = figures::Range{${from}, ${to}}`,
  at: (value) => `.at = ${value}`, shift: (value) => `.shift = ${value}`, key: (value) => `.key = ${value}`, head: (value) => `.head = ${value}`,
  features: (list) => (list.length ? `.features = {${list.join(', ')}}` : undefined),
  numerics: (value) => (value === 'exact' ? undefined : `.numerics = numerics_from("${value}")`),
  dtype: (value) => (value === 'f64' ? undefined : `.type = data_type_from("${value}")`),
  length: (value) => `.length = ${value}`, trained: (value) => `.trained = ${value}`, factor: (value) => `.factor = ${value}`,
  compare: (value) => (value ? '.compares = true' : undefined), lines: (value) => (value ? '.as_lines = true' : undefined),
  log_x: (value) => (value ? '.log_x = true' : undefined), log_y: (value) => (value ? '.log_y = true' : undefined), bound: (value) => (value ? '.has_bound = true' : undefined),
  spec: (value) => (value ? `.spec = "${value}"` : undefined),
};

function cpp(request: Request): string | undefined {
  if (request.table) return undefined;
  const set = Object.entries(fields).map(([name, words]) => (request[name] === undefined ? undefined : words(request[name]))).filter(Boolean);
  return `#include <posenc/aliases.h>
#include <posenc/figures.h>

#include <cstdio>

int main() {
  using namespace posenc;
  const figures::Figure figure = figures::make("${request.kind}", {${set.length ? `\n      ${set.join(',\n      ')}` : ''}});
  for (const auto& row : figure.rows)
    for (const auto& panel : row.panels) {
      for (const auto& line : panel.series)
        for (std::size_t i = 0; i < line.y.size(); ++i) std::printf("%.17g %.17g\\n", line.x[i], line.y[i]);
      if (panel.heat_map)
        for (const double value : panel.heat_map->values) std::printf("%.17g\\n", value);
    }
}
`;
}

/// What a question for a figure is in each language that has a short form of it.
export function codeOf(request: object): Code[] {
  const asked = request as Request, python = 'kind' in asked ? numpy(asked) : undefined, native = 'kind' in asked ? cpp(asked) : undefined;
  return [...(python ? [{ language: 'numpy', text: python }, { language: 'torch', text: torch(python) }] : []), ...(native ? [{ language: 'C++', text: native }] : [])];
}
