// The contrast of every text on a page by the formula of WCAG 2.2 (1.4.3): a script for the page. window.paleTexts() gives
// {pale: what is too pale, kinds: [kind, mark] of texts that look alike}; the first text of a kind gets data-kind="mark".

export const contrast = `window.paleTexts ??= () => {
  const parsed = new Map();
  const colourOf = (text) => {
    if (!parsed.has(text)) {
      const numbers = (/\\(([^)]*)\\)/.exec(text)?.[1] ?? '0 0 0 0').replace('srgb', '').split(/[\\s,/]+/).filter(Boolean).map(Number);
      const scale = text.startsWith('color(') ? 1 : 255;
      parsed.set(text, [numbers[0] / scale, numbers[1] / scale, numbers[2] / scale, numbers[3] ?? 1]);
    }
    return parsed.get(text);
  };
  const over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3])).concat(1);
  const light = (colour) => colour.slice(0, 3).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)).reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = new Map([[null, [1, 1, 1, 1]]]);
  const paperOf = (one) => {
    if (!behind.has(one)) behind.set(one, over(colourOf(getComputedStyle(one).backgroundColor), paperOf(one.parentElement)));
    return behind.get(one);
  };
  const pale = [], kinds = new Map();
  for (const one of document.querySelectorAll('body *')) {
    if (![...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim()) && !one.matches('select, textarea, input[type=text], input[type=search]')) continue;
    if (one.closest('.visually-hidden, noscript, script, option') || one.disabled || !one.checkVisibility({ visibilityProperty: true })) continue;
    const style = getComputedStyle(one), paper = paperOf(one), size = parseFloat(style.fontSize), isLarge = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    const ink = over(colourOf(one instanceof SVGElement ? style.fill : style.color), paper), [dim, bright] = [light(ink), light(paper)].sort((a, b) => a - b), ratio = (bright + 0.05) / (dim + 0.05);
    if (ratio < (isLarge ? 3 : 4.5)) pale.push('contrast ' + ratio.toFixed(2) + ': ' + one.outerHTML.slice(0, 120));
    // shades of cells are without number, and each has been judged
    const kind = [one.tagName, one.className.baseVal ?? one.className, ink, one.matches('.cell') ? '' : paper, style.fontSize, style.fontWeight, style.textDecorationLine].join();
    if (kinds.has(kind)) continue;
    one.dataset.kind = String(kinds.size);
    kinds.set(kind, one.dataset.kind);
  }
  return { pale, kinds: [...kinds] };
};`;
