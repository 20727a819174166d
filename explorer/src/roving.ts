// One stop of the Tab key for a whole table: the arrow keys, Home and End move within it.

const steps: { [key: string]: [number, number] } = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] };

/// Makes the elements that `selector` finds in the cells of `body` one stop. Call it again when the cells are new.
export function rove(body: HTMLTableSectionElement, selector: string): void {
  const all = () => [...body.querySelectorAll<HTMLElement>(selector)];
  const stay = (one: HTMLElement) => {
    for (const other of all()) other.tabIndex = other === one ? 0 : -1;
  };
  const first = all()[0];
  if (first) stay(first);
  if (body.dataset.roves) return;
  body.dataset.roves = 'yes';
  body.addEventListener('focusin', ({ target }) => {
    const one = (target as HTMLElement).closest<HTMLElement>(selector);
    if (one && body.contains(one)) stay(one);  // not what is around the table
  });
  body.onkeydown = (event) => {
    const from = (event.target as HTMLElement).closest<HTMLElement>(selector), cell = from?.closest('td');
    if (!from || !cell || !body.contains(from) || event.altKey || event.ctrlKey || event.metaKey) return;
    const row = cell.parentElement as HTMLTableRowElement, step = steps[event.key];
    let to: HTMLElement | null | undefined;
    if (step) {
      let line = row.sectionRowIndex + step[0], column = cell.cellIndex + step[1];
      // over cells that have nothing to focus
      for (; body.rows[line]?.cells[column] && !to; line += step[0], column += step[1]) to = body.rows[line].cells[column].querySelector<HTMLElement>(selector);
    } else if (event.key === 'Home') to = row.querySelector<HTMLElement>(selector);
    else if (event.key === 'End') to = [...row.querySelectorAll<HTMLElement>(selector)].at(-1);
    else return;
    event.preventDefault();
    to?.focus();
  };
}
