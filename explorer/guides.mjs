// The guides of docs/ as pages of the site, and what its search looks through. Made when the site is built; the page only
// shows it. Knows as much Markdown as the guides use, and refuses what it does not know.

import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

const escaped = (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
const slug = (text) => text.toLowerCase().replace(/[^a-z0-9]+/g, '-').replace(/^-|-$/g, '');

/// Code, bold, emphasis and links. A link to another guide opens it here; one to a file of the repository is its words alone.
export function inline(text, guides) {
  const parts = text.split(/(`[^`]+`)/);
  return parts.map((part) => {
    if (part.startsWith('`') && part.endsWith('`') && part.length > 1) return `<code>${escaped(part.slice(1, -1))}</code>`;
    return escaped(part)
      .replace(/\[([^\]]*)\]\(([^)]+)\)/g, (_, words, to) => {
        const [, guide, part] = /^(?:\.\.\/)?(?:guide\/)?([a-z-]+)\.md(?:#([a-z0-9-]+))?$/.exec(to) ?? [];
        if (guides.includes(guide)) return `<a href="#v=1&amp;p=guides&amp;g=${guide}${part ? `&amp;part=${part}` : ''}">${words}</a>`;
        return /^https:\/\//.test(to) ? `<a href="${to}" rel="noreferrer">${words}</a>` : words;
      })
      .replace(/\*\*([^*]+)\*\*/g, '<strong>$1</strong>')
      .replace(/(^|[\s(])\*([^*\s][^*]*)\*/g, '$1<em>$2</em>');
  }).join('');
}

const cells = (line) => line.trim().replace(/^\||\|$/g, '').split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll('\\|', '|'));

/// HTML of a part of a guide, which has no headings of its own but ###.
function blocks(lines, guides) {
  const html = [];
  let at = 0;
  const paragraph = (stop) => {
    const words = [];
    while (at < lines.length && lines[at].trim() && !stop(lines[at])) words.push(lines[at++].trim());
    return inline(words.join(' '), guides);
  };
  const begins = (line) => /^(```|\||#{1,3} |\s*- )/.test(line);
  const list = (indent) => {
    const items = [];
    while (at < lines.length && new RegExp(`^ {${indent}}- `).test(lines[at])) {
      lines[at] = lines[at].replace('- ', '  ');
      let item = paragraph((line) => begins(line));
      if (at < lines.length && new RegExp(`^ {${indent + 2}}- `).test(lines[at])) item += list(indent + 2);
      items.push(`<li>${item}</li>`);
    }
    return `<ul>${items.join('')}</ul>`;
  };
  while (at < lines.length) {
    const line = lines[at];
    if (!line.trim()) {
      ++at;
    } else if (line.startsWith('```')) {
      const code = [];
      for (++at; at < lines.length && !lines[at].startsWith('```'); ++at) code.push(lines[at]);
      ++at;
      html.push(`<pre tabindex="0"><code>${escaped(code.join('\n'))}</code></pre>`);
    } else if (/^ {4}\S/.test(line)) {
      const code = [];
      for (; at < lines.length && (/^ {4}/.test(lines[at]) || !lines[at].trim()); ++at) code.push(lines[at].slice(4));
      html.push(`<pre tabindex="0"><code>${escaped(code.join('\n').trimEnd())}</code></pre>`);
    } else if (line.startsWith('|')) {
      const rows = [];
      for (; at < lines.length && lines[at].startsWith('|'); ++at) rows.push(cells(lines[at]));
      const [head, , ...body] = rows;
      const titles = head.some(Boolean) ? `<thead><tr>${head.map((cell) => cell ? `<th scope="col">${inline(cell, guides)}</th>` : '<td></td>').join('')}</tr></thead>` : '';
      html.push(`<div class="scroll" tabindex="0" role="group" aria-label="Table"><table>${titles}<tbody>${body.map((row) => `<tr>${row.map((cell) => `<td>${inline(cell, guides)}</td>`).join('')}</tr>`).join('')}</tbody></table></div>`);
    } else if (line.startsWith('### ')) {
      html.push(`<h4>${inline(line.slice(4), guides)}</h4>`);
      ++at;
    } else if (/^- /.test(line)) {
      html.push(list(0));
    } else if (/^#|^!\[|^>|^\d+\. /.test(line)) {
      throw new Error(`a guide has a line that the site cannot show: ${line}`);
    } else {
      html.push(`<p>${paragraph(begins)}</p>`);
    }
  }
  return html.join('\n');
}

const plain = (html) => html.replace(/<[^>]*>/g, ' ').replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&quot;', '"').replaceAll('&amp;', '&').replace(/\s+/g, ' ').trim();

/// [{id, title, sections: [{id, title, html}]}]: the first section is what comes before the first heading.
export function readGuides(docs) {
  const files = [...readdirSync(join(docs, 'guide')).filter((name) => name.endsWith('.md')).sort().map((name) => join('guide', name)), 'concepts.md'];
  const idOf = (file) => file.replace(/^guide\//, '').replace(/\.md$/, '');
  const ids = files.map(idOf);
  return files.map((file) => {
    const [first, ...lines] = readFileSync(join(docs, file), 'utf8').split('\n');
    if (!first.startsWith('# ')) throw new Error(`${file}: has no title`);
    const parts = [{ title: '', lines: [] }];
    let inCode = false;
    for (const line of lines) {
      if (line.startsWith('```')) inCode = !inCode;
      if (!inCode && line.startsWith('## ')) parts.push({ title: line.slice(3), lines: [] });
      else parts.at(-1).lines.push(line);
    }
    return {
      id: idOf(file), title: first.slice(2),
      sections: parts.map((part) => {
        return { id: slug(part.title), title: plain(inline(part.title, ids)), html: blocks(part.lines, ids) };
      }),
    };
  });
}

// The words in the code of a page.
const wordsOfPage = (file) => [...readFileSync(file, 'utf8').matchAll(/'((?:[^'\\\n]|\\.)*)'/g)].map(([, words]) => words.replaceAll("\\'", "'")).filter((words) => / \S+ /.test(words));
/// The paragraphs of a page, for those who do not run it.
export const paragraphsOfPage = (file) => wordsOfPage(file).filter((words) => words.length > 60 && /[.?]$/.test(words)).map((words) => `<p>${inline(words, [])}</p>`).join('\n');

// What a page says, and its question.
function textOfPage(file, guess) {
  const sentences = wordsOfPage(file);
  const asked = guess ? [guess.question, ...guess.choices.flatMap((one) => [one.text, one.because])] : [];
  return [...sentences, ...asked].join(' ').replaceAll('`', '');
}

/// The file of each page: {id: path}.
export const pageFiles = (source) => Object.fromEntries([...readFileSync(join(source, 'map.ts'), 'utf8').matchAll(/(\w+): \(\) => import\('\.\/(pages\/\w+)'\)/g)].map(([, id, file]) => [id, join(source, `${file}.ts`)]));

/// What the search finds besides the guides: pages, schemes and worked examples.
export function readIndex(content, source) {
  const json = (...path) => JSON.parse(readFileSync(join(content, ...path), 'utf8'));
  const schemes = Object.entries(json('scheme_pages.json')).map(([name, page]) => ({ name, text: [page.idea, ...page.pitfalls, ...page.papers.map((paper) => `${paper.authors} ${paper.year} ${paper.title}`)].join(' ') }));
  // in the order in which they are taught
  const stories = json('topics.json').topics.flatMap((topic) => topic.stories).map((name) => ({ name, ...json('stories', `${name}.json`) }))
    .map(({ name, title, summary, python, figure }) => ({ name, title, text: summary, python: python.join('\n'), figure }));
  const guesses = json('guesses.json'), pages = Object.fromEntries(Object.entries(pageFiles(source)).map(([id, file]) => [id, textOfPage(file, guesses[id])]));
  return { schemes, stories, pages };
}

/// What content/ says of each scheme, beyond what the library knows, and the name of its type: {name: {idea, papers,
/// pitfalls, type}}.
export function readSchemePages(content, headers) {
  const pages = JSON.parse(readFileSync(join(content, 'scheme_pages.json'), 'utf8'));
  const types = Object.fromEntries(readdirSync(headers).flatMap((file) =>
    [...readFileSync(join(headers, file), 'utf8').matchAll(/^struct (\w+) \{\n  static constexpr std::string_view name = "([^"]+)";\n  static constexpr std::string_view family/gm)].map(([, type, name]) => [name, type])));
  return Object.fromEntries(Object.entries(pages).map(([name, { idea, papers, pitfalls }]) => {
    if (!types[name]) throw new Error(`scheme_pages.json: no type has the name ${name}`);
    return [name, { idea, papers, pitfalls, type: types[name] }];
  }));
}
