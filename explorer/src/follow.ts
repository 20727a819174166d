// What follows the view beside a figure (a note, a row of clocks): with every frame while it can be seen, else at rest.

import { write } from './dom';
import { notWithFrame, spend, withFrame } from './pace';
import { view } from './state';

const restTime = 120;

/// Whether an element is on the screen, or about to be; until the browser has said, it is.
export function watchSight(place: Element): () => boolean {
  let isSeen = true;
  const seen = new IntersectionObserver((changes) => { isSeen = changes.at(-1)!.isIntersecting; }, { rootMargin: '80px' });
  seen.observe(place);
  view.atEnd(() => seen.disconnect());
  return () => isSeen;
}

/// Calls `act` after every change of the view, at most once in a frame. While something moves, only if `place` can be seen, and
/// not at all if it `rests`: then once nothing moves any more. Gives what ends it, which the end of the page does, too.
export function follow(place: HTMLElement, act: () => void, rests = false): () => void {
  const isSeen = rests ? () => false : watchSight(place);
  let isAsking = false, timer = 0;
  const done = () => {
    isAsking = false;
    timer = 0;
    delete place.dataset.waiting;
    if (place.isConnected) spend(act);
  };
  const later = () => { timer = view.isMoving(restTime) ? setTimeout(later, restTime) as unknown as number : (done(), 0); };
  const stop = view.onChange(() => {
    if (!place.isConnected || isAsking) return;
    if (isSeen()) {
      clearTimeout(timer);
      timer = 0;
      isAsking = true;
      withFrame(done);
    } else if (!timer) {
      place.dataset.waiting = 'yes';
      timer = setTimeout(later, restTime) as unknown as number;
    }
  });
  const end = () => {
    stop();
    clearTimeout(timer);
    notWithFrame(done);
  };
  view.atEnd(end);
  return end;
}

/// Writes into `place`, an error at once. Words may make it higher, and move all that follows: while something moves, ten times a second
/// is enough.
export function calmly(place: HTMLElement): (words: string, isRefused?: boolean) => void {
  let wanted = '', at = -Infinity, isWaiting = false;
  const now = () => {
    at = performance.now();
    delete place.dataset.waiting;
    write(place, wanted);
  };
  return (words, isRefused = false) => {
    const isOther = place.classList.contains('refused') !== isRefused;
    place.classList.toggle('refused', isRefused);
    wanted = words;
    if (isOther || !view.isMoving(restTime) || performance.now() - at > 100) return now();
    if (isWaiting) return;
    isWaiting = true;
    place.dataset.waiting = 'yes';
    void view.rest(restTime).then(() => { isWaiting = false; now(); });
  };
}
