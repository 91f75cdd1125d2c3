// What the page knows of runs, and where their cards stand. Nothing here draws or asks.
import type { LinesWindow } from "./lines_window.ts";
import type { Progress, RunStep, ToolRun } from "./types.ts";

export type Runs = ReadonlyMap<string, ToolRun>;

const RUNS_MAX = 2000; // what one tab keeps; those that have ended are forgotten first
const RUNS_KEPT = 1500;

/** How far a step is. A word that this page does not know may mean anything. */
const RANKS: Record<string, number> = { waiting: 0, running: 1, late: 2, held: 3 };
const FINAL: readonly string[] = ["reported", "failed", "timed_out", "interrupted", "cancelled", "skipped"];

export function isFinal(step: RunStep): boolean {
  return FINAL.includes(step.state);
}

export function isRunning(run: ToolRun): boolean {
  return run.state === "running";
}

/** While its tool works. */
export function isWorking(step: RunStep): boolean {
  return step.startedAt !== undefined && step.endedAt === undefined && !isFinal(step) && step.state !== "waiting";
}

function rank(step: RunStep): number {
  return isFinal(step) ? 4 : (RANKS[step.state] ?? 0);
}

function ranks(run: ToolRun): number {
  return run.steps.reduce((sum, step) => sum + rank(step), 0);
}

/**
 * Whether this says more than what is known. Not every change is an event, a result that is held is none: with the same
 * number the one whose steps are further is the newer one.
 */
function isNewer(run: ToolRun, known: ToolRun): boolean {
  if (run.lastEvent !== known.lastEvent) return run.lastEvent > known.lastEvent;
  return isRunning(known) ? ranks(run) >= ranks(known) : !isRunning(run);
}

function shortened(runs: Map<string, ToolRun>): Map<string, ToolRun> {
  if (runs.size <= RUNS_MAX) return runs;
  const ended = [...runs.values()].filter((run) => !isRunning(run)).sort(byCreation);
  for (const run of ended.slice(0, runs.size - RUNS_KEPT)) runs.delete(run.id);
  return runs;
}

/** What was read and what was heard may come in any order: nothing goes backwards. */
export function mergeRuns(known: Runs, read: readonly ToolRun[]): Runs {
  const news = read.filter((run) => {
    const before = known.get(run.id);
    return !before || isNewer(run, before);
  });
  if (news.length === 0) return known;
  const merged = new Map(known);
  for (const run of news) merged.set(run.id, run);
  return shortened(merged);
}

/** By run and step: what its tool last said, since the page follows the chat. */
export type AllProgress = ReadonlyMap<string, ReadonlyMap<number, Progress>>;

function isOver(run: ToolRun, step: number): boolean {
  const found = run.steps.find((one) => one.index === step);
  return !found || isFinal(found) || found.endedAt !== undefined;
}

/** Also of a run that is not known yet: what is being read of it may be older than this. */
export function withProgress(all: AllProgress, runs: Runs, id: string, step: number, progress: Progress): AllProgress {
  const run = runs.get(id);
  if (run && isOver(run, step)) return all;
  return new Map(all).set(id, new Map(all.get(id)).set(step, progress));
}

/** What was read has what tools said before the page listened; what was heard is never older. */
export function withReadProgress(all: AllProgress, runs: Runs, read: readonly ToolRun[]): AllProgress {
  let known = all;
  for (const { id, steps } of read)
    for (const { index, progress } of steps)
      if (progress && !known.get(id)?.has(index)) known = withProgress(known, runs, id, index, progress);
  return known;
}

/** What was said about runs that have ended is of no use any more. */
export function progressOf(all: AllProgress, runs: Runs): AllProgress {
  const over = [...all.keys()].filter((id) => { const run = runs.get(id); return run && !isRunning(run); });
  return over.length === 0 ? all : new Map([...all].filter(([id]) => !over.includes(id)));
}

function byCreation(a: ToolRun, b: ToolRun): number {
  return Date.parse(a.createdAt) - Date.parse(b.createdAt) || (a.id < b.id ? -1 : 1);
}

/**
 * By the number of the line above: the cards that stand below it. 0 is the beginning, above the first line. Cards whose
 * place is outside of the window are left out; at the end of the conversation nothing is, since a run may be heard of
 * before the line that it follows.
 */
export function placeRuns(runs: Runs, session: string, window: LinesWindow, atNewest: boolean): ReadonlyMap<number, readonly ToolRun[]> {
  const places = new Map<number, ToolRun[]>();
  const from = window.from <= 1 ? 0 : window.from;
  const shown = [...runs.values()].filter((run) => run.session === session && run.afterSeq >= from);
  for (const run of shown.sort(byCreation)) {
    if (run.afterSeq > window.to && !atNewest) continue;
    const place = Math.min(run.afterSeq, window.to);
    places.set(place, [...(places.get(place) ?? []), run]);
  }
  return places;
}

const LOCAL = "local__";

export function plainName(tool: string): string {
  return tool.startsWith(LOCAL) ? tool.slice(LOCAL.length) : tool;
}

/** The steps of a run that are over, for "2 of 3". */
export function stepsDone(run: ToolRun): number {
  return run.steps.filter(isFinal).length;
}
