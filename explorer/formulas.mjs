// Formulas, from TeX to MathML when the site is built, and the glyphs of a math font that they need: the page neither
// loads nor runs a typesetter, and a screen reader reads the formulas.

import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/// {page: {name: MathML}}. Style attributes are left out: the policy of the site forbids them, and they only space.
export function readFormulas(source, temml) {
  const pages = JSON.parse(readFileSync(join(source, 'formulas.json'), 'utf8'));
  const made = (tex) => temml.renderToString(tex, { displayMode: true, throwOnError: true })
    .replace(/ (?:style|class)="[^"]*"/g, '').replace(/<mrow><\/mrow>/g, '')
    // a bar above: <menclose> is not in MathML Core, and a browser without it draws no bar
    .replace(/<menclose notation="top">(.*?)<\/menclose>/g, '<mover accent="true"><mrow>$1<mspace width="0" height="1.02em"></mspace></mrow><mo stretchy="true">‾</mo></mover>');
  return Object.fromEntries(Object.entries(pages).map(([page, formulas]) =>
    [page, Object.fromEntries(Object.entries(formulas).map(([name, tex]) => [name, made(tex)]))]));
}

/// One module for each page, so that a page loads its own formulas or guess alone: FOLDER/PAGE.js, which exports `name`.
export function writePages(pages, folder, name) {
  mkdirSync(folder, { recursive: true });
  for (const [page, value] of Object.entries(pages)) {
    writeFileSync(join(folder, `${page}.js`), `export const ${name} = ${JSON.stringify(value)};\n`);
  }
}

// A browser draws the letter of <mi>x</mi> from the block of italic letters.
function italic(character) {
  const code = character.codePointAt(0);
  if (character === 'h') return 0x210e;
  if (code >= 0x41 && code <= 0x5a) return 0x1d434 + code - 0x41;
  if (code >= 0x61 && code <= 0x7a) return 0x1d44e + code - 0x61;
  if (code >= 0x391 && code <= 0x3a9) return 0x1d6e2 + code - 0x391;
  if (code >= 0x3b1 && code <= 0x3c9) return 0x1d6fc + code - 0x3b1;
  return code;
}

/// The characters that formulas and the worked examples use. Those of examples are computed, so the usual signs are all in.
export function glyphsOf(formulas) {
  const text = Object.values(formulas).flatMap(Object.values).join('').replace(/<[^>]*>/g, '');
  const usual = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789 .,:;()[]{}|/+-=<>\'"!%&*_^~αβγδεζηθκλμνπρστφψωΔΠΣΩ−·×÷±≤≥≈≠→∈√∞∑′ᵀ‖⌊⌋⟨⟩';
  const codes = new Set([...text, ...usual].flatMap((one) => [one.codePointAt(0), italic(one)]));
  return [...codes].filter((code) => code >= 32).sort((a, b) => a - b);
}

/// Writes those glyphs, with what stretches brackets and roots. The font's own copyright and licence stay in it.
export function writeFont({ tool, font, to, codes }) {
  execFileSync(tool, [font, `--output-file=${to}`, '--flavor=woff2', `--unicodes=${codes.map((code) => code.toString(16)).join(',')}`,
    '--layout-features=ssty,math,dtls,flac', '--name-IDs=0,5,7,13,14', '--no-hinting', '--desubroutinize']);
}
