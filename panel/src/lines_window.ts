// Which lines of a long conversation are in the page. The window is given in numbers of lines, not in places, so that lines
// that come in above do not move it.
import { firstSeq, lastSeq, type Run } from "./log.ts";

export interface LinesWindow {
  from: number;
  to: number;
}

export const WINDOW_MAX = 200;
export const WINDOW_START = 100;
/** Few at a time: drawing many new lines would cost a frame. */
export const STEP = 20;

export function atEnd(run: Run): LinesWindow {
  const to = lastSeq(run);
  return { from: Math.max(firstSeq(run), to - WINDOW_START + 1), to };
}

export function around(run: Run, seq: number): LinesWindow {
  const half = WINDOW_START / 2;
  return { from: Math.max(firstSeq(run), seq - half), to: Math.min(lastSeq(run), seq + half) };
}

export function up(window: LinesWindow, run: Run): LinesWindow {
  const from = Math.max(firstSeq(run), window.from - STEP);
  return { from, to: Math.min(window.to, from + WINDOW_MAX - 1) };
}

export function down(window: LinesWindow, run: Run): LinesWindow {
  const to = Math.min(lastSeq(run), window.to + STEP);
  return { from: Math.max(window.from, to - WINDOW_MAX + 1), to };
}

export function clamp(window: LinesWindow, run: Run): LinesWindow {
  if (run.length === 0) return { from: 1, to: 0 };
  if (window.to < firstSeq(run) || window.from > lastSeq(run)) return atEnd(run);
  return { from: Math.max(window.from, firstSeq(run)), to: Math.min(window.to, lastSeq(run)) };
}

export function within(run: Run, window: LinesWindow): Run {
  const first = firstSeq(run);
  return run.slice(Math.max(0, window.from - first), Math.max(0, window.to - first + 1));
}
