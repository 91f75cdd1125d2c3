// The lines of one conversation that the page has, by number.
//
// 1. Each number is there once. Runs are sorted, dense, and never touch: where two meet they are one.
// 2. The last run is the live one if `live` is set: it ends at `live`, the highest number up to which nothing is missing.
// 3. What a question's state is follows from the lines: a line that closes it counts, whichever of the two came first.
import type { Answer, Line, QuestionState } from "./types.ts";

export type Run = readonly Line[];

export interface Log {
  readonly runs: readonly Run[];
  /** Up to here the page follows the server; undefined until the newest lines were read. */
  readonly live: number | undefined;
  /** By the id of the question: the line that ended it. */
  readonly closings: ReadonlyMap<string, Line>;
}

export const EMPTY_LOG: Log = { runs: [], live: undefined, closings: new Map() };

const LIVE_LINES_MAX = 20_000; // what one tab keeps of a conversation that it only follows
const LIVE_LINES_KEPT = 15_000;

export function firstSeq(run: Run): number {
  return run[0]?.seq ?? 0;
}

export function lastSeq(run: Run): number {
  return run[run.length - 1]?.seq ?? 0;
}

function denseRuns(lines: readonly Line[]): Line[][] {
  const bySeq = new Map(lines.map((line) => [line.seq, line]));
  const sorted = [...bySeq.values()].sort((a, b) => a.seq - b.seq);
  const runs: Line[][] = [];
  for (const line of sorted) {
    const last = runs[runs.length - 1];
    if (last && lastSeq(last) + 1 === line.seq) last.push(line);
    else runs.push([line]);
  }
  return runs;
}

function overlapsOrTouches(a: Run, b: Run): boolean {
  return firstSeq(a) <= lastSeq(b) + 1 && firstSeq(b) <= lastSeq(a) + 1;
}

/** Later lines win: what the server said last about a number is the newest state of its question. */
function mergeRuns(runs: readonly Run[], added: readonly Run[]): Run[] {
  let result = [...runs];
  for (const run of added) {
    const touching = result.filter((each) => overlapsOrTouches(each, run));
    const merged = touching.length === 0 ? run : (denseRuns([...touching.flat(), ...run])[0] ?? run);
    result = [...result.filter((each) => !touching.includes(each)), merged];
  }
  return result.sort((a, b) => firstSeq(a) - firstSeq(b));
}

function withClosings(closings: ReadonlyMap<string, Line>, lines: readonly Line[]): ReadonlyMap<string, Line> {
  const closing = lines.filter((line) => line.closes && line.closes.length > 0);
  if (closing.length === 0) return closings;
  const result = new Map(closings);
  for (const line of closing) for (const id of line.closes ?? []) result.set(id, line);
  return result;
}

/** History may have read further than the socket has said; then the page follows from there. */
function liveEnd(runs: readonly Run[], live: number | undefined): number | undefined {
  const run = live === undefined ? undefined : runs.find((each) => firstSeq(each) <= live + 1 && live <= lastSeq(each));
  return run ? lastSeq(run) : live;
}

/** Lines of a page of history, wherever they belong. */
export function addHistory(log: Log, lines: readonly Line[]): Log {
  if (lines.length === 0) return log;
  const runs = mergeRuns(log.runs, denseRuns(lines));
  return { runs, live: liveEnd(runs, log.live), closings: withClosings(log.closings, lines) };
}

/** The newest page: from here on the page follows. */
export function startLive(log: Log, lines: readonly Line[], last: number): Log {
  const added = addHistory(log, lines);
  const newest = lastSeq(denseRuns(lines).at(-1) ?? []);
  return { ...added, live: Math.max(newest, lines.length === 0 ? last : 0, log.live ?? 0) };
}

function appended(run: Run, line: Line): Run {
  const kept = run.length >= LIVE_LINES_MAX ? run.slice(run.length - LIVE_LINES_KEPT) : run;
  return [...kept, line];
}

export type Followed = { log: Log; outcome: "added" | "known" | "gap" };

/** The next line of the live run. One that was seen is dropped, one that comes too early is a gap to ask about. */
export function follow(log: Log, line: Line): Followed {
  const live = log.live ?? 0;
  if (line.seq <= live) return { log, outcome: "known" };
  if (line.seq > live + 1) return { log, outcome: "gap" };
  const last = log.runs[log.runs.length - 1];
  const joins = last !== undefined && lastSeq(last) === live;
  const runs = joins ? [...log.runs.slice(0, -1), appended(last, line)] : mergeRuns(log.runs, [[line]]);
  const followed = { runs, live: liveEnd(runs, line.seq), closings: withClosings(log.closings, [line]) };
  return { log: followed, outcome: "added" };
}

/** The run in which this number is; without a number, or if nobody has it, the newest. */
export function runAround(log: Log, seq: number | undefined): Run {
  const found = seq === undefined ? undefined : log.runs.find((run) => firstSeq(run) <= seq && seq <= lastSeq(run));
  return found ?? log.runs[log.runs.length - 1] ?? [];
}

export function isLive(log: Log, run: Run): boolean {
  return log.live !== undefined && (run.length === 0 || lastSeq(run) === log.live);
}

export interface Question {
  state: QuestionState;
  index?: number;
  text?: string;
  by?: string;
}

function questionFrom(closing: Line): Question {
  const pressed = closing.quickReplyIndex !== undefined;
  const chosen = { text: closing.text, by: closing.from, ...(pressed ? { index: closing.quickReplyIndex as number } : {}) };
  if (closing.source === "system") return pressed ? { state: "defaulted", ...chosen } : { state: "expired" };
  return pressed ? { state: "answered", ...chosen } : { state: "closed", ...chosen };
}

function questionAsTold(state: QuestionState, answer: Answer | undefined): Question {
  return {
    state,
    ...(answer?.index === undefined ? {} : { index: answer.index }),
    ...(answer?.text === undefined ? {} : { text: answer.text }),
    ...(answer?.by === undefined ? {} : { by: answer.by }),
  };
}

/** What has become of a question, given the line that closed it, if any; undefined if the line is no question. */
export function questionOf(line: Line, closing: Line | undefined): Question | undefined {
  if (!line.quickReplies) return undefined;
  const told = questionAsTold(line.questionState ?? "open", line.answer);
  // A typed line that closes several questions has no index for this one unless it was an answer to it.
  const found = closing ? questionFrom(closing) : undefined;
  if (!closing || !found) return told;
  const pressedAnother = found.state === "answered" && closing.inReplyTo !== line.messageId;
  return pressedAnother ? { state: "closed", text: closing.text, by: closing.from } : found;
}
