// When what follows a change is asked for and drawn: with the next frame, at most once in each. Where a machine needs longer for it
// than a frame has time, with every second or third one: the control that is dragged moves with every frame all the same.

// Milliseconds of a frame that figures may take; the rest is for the control and the browser.
const budget = 8, rarest = 4;
// One turn of so many is timed. After a pause nothing is known of the next turn.
const sampled = 4, pause = 250;

const acts = new Set<() => void>();
let frame = 0, passed = 0, turns = 0, last = 0, before = 0, drawing = 0, drawn = 0, laidOut = 0, cost = 0;

// What the browser needs for what was changed: from here until it has time again.
function timeFrame(): void {
  const began = performance.now();
  setTimeout(() => { laidOut += performance.now() - began; });
}

// Milliseconds between frames while something moves.
const lateFrame = 20;
let between = 0;
export const isLate = (): boolean => between > lateFrame;

function turn(now: number): void {
  frame = 0;
  const since = now - before;
  if (since > 0 && since < pause) between = 0.6 * between + 0.4 * since;
  before = now;
  const isSampled = turns % sampled === 1;
  if (now - last > pause) turns = passed = laidOut = 0;
  else if (isSampled) timeFrame();
  if (now - last <= pause && ++passed < Math.min(rarest, Math.ceil(cost / budget))) {
    frame = requestAnimationFrame(turn);
    return;
  }
  if (isSampled) {
    drawn = drawing;
  } else if (turns % sampled === 2) {
    cost = cost ? (cost + drawn + laidOut) / 2 : drawn + laidOut;
    laidOut = 0;
  }
  ++turns;
  last = now;
  passed = drawing = 0;
  const list = [...acts];
  acts.clear();
  for (const act of list) act();
}

/// Calls `act` with the next frame that has time for it; once, however often it is asked for until then.
export function withFrame(act: () => void): void {
  acts.add(act);
  frame ||= requestAnimationFrame(turn);
}
export const notWithFrame = (act: () => void): void => { acts.delete(act); };

/// Does `work`, which is counted to what a turn takes.
export function spend(work: () => void): void {
  const began = performance.now();
  work();
  drawing += performance.now() - began;
}
