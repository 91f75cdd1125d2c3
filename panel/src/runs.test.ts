import { strict as assert } from "node:assert/strict";
import { test } from "node:test";
import { isWorking, mergeRuns, placeRuns, plainName, progressOf, withProgress, type Runs } from "./runs.ts";
import { initialState, reduce, type Event } from "./state.ts";
import type { RunStep, ToolRun } from "./types.ts";

const AT = "2026-11-16T11:34:28.168Z";

function step(state: string, more: Partial<RunStep> = {}): RunStep {
  return { index: 0, aiName: "local__echo", state, dependsOn: [], ...more };
}

function run(id: string, more: Partial<ToolRun> = {}): ToolRun {
  return { id, session: "s", state: "running", createdAt: AT, lastEvent: 1, afterSeq: 0, steps: [step("running")], ...more };
}

function known(...runs: ToolRun[]): Runs {
  return mergeRuns(new Map(), runs);
}

// F8
test("a run never goes backwards, whichever of reading and hearing comes first", () => {
  const old = run("r", { lastEvent: 3 });
  const done = run("r", { lastEvent: 5, state: "completed", steps: [step("reported")] });

  assert.equal(mergeRuns(known(done), [old]).get("r"), done);
  assert.equal(mergeRuns(known(old), [done]).get("r"), done);
  const same = known(done);
  assert.equal(mergeRuns(same, [old]), same, "nothing new is no change");
});

// F3
test("with the same number the one whose steps are further counts: that a result is held is no event", () => {
  const working = run("r");
  const held = run("r", { steps: [step("held", { endedAt: AT })] });

  assert.equal(mergeRuns(known(working), [held]).get("r"), held);
  assert.equal(mergeRuns(known(held), [working]).get("r"), held);
  const strange = run("r", { lastEvent: 2, steps: [step("dancing")] });
  assert.equal(mergeRuns(known(held), [strange]).get("r"), strange);
});

test("what one tab keeps has a bound, and what runs is never forgotten", () => {
  const oldest = run("oldest", { createdAt: new Date(0).toISOString() });
  const ended = Array.from({ length: 2500 }, (_, index) => run(`e${index}`, { state: "completed", createdAt: new Date(1000 + index).toISOString() }));
  const runs = known(oldest, ...ended);

  assert.ok(runs.size <= 2000);
  assert.ok(runs.has("oldest") && runs.has("e2499") && !runs.has("e0"));
});

// F8
test("cards stand behind the line after which they began, several in order of creation", () => {
  const runs = known(run("late", { afterSeq: 5, createdAt: "2026-11-16T12:00:00.000Z" }), run("early", { afterSeq: 5 }), run("other", { afterSeq: 6 }), run("elsewhere", { session: "t" }));
  const places = placeRuns(runs, "s", { from: 1, to: 10 }, true);

  assert.deepEqual([...places].map(([seq, all]) => [seq, all.map((each) => each.id)]), [[5, ["early", "late"]], [6, ["other"]]]);
});

test("cards slide with the window of lines: what is outside of it is not shown", () => {
  const runs = known(...[0, 1, 49, 50, 100, 150, 151].map((afterSeq) => run(`r${afterSeq}`, { afterSeq })));
  const shown = (from: number, to: number, atNewest: boolean): number[] => [...placeRuns(runs, "s", { from, to }, atNewest).keys()].sort((a, b) => a - b);

  assert.deepEqual(shown(50, 150, false), [50, 100, 150]);
  assert.deepEqual(shown(1, 60, false), [0, 1, 49, 50], "at the beginning also above the first line");
  assert.deepEqual(shown(150, 150, true), [150], "what is heard of before its line stands at the end");
  assert.equal(placeRuns(runs, "s", { from: 150, to: 150 }, true).get(150)?.length, 2);
  assert.deepEqual([...placeRuns(known(run("r")), "s", { from: 0, to: 0 }, true).keys()], [0], "in a chat without lines");
});

test("progress is kept while its tool works, and dropped with its run", () => {
  const runs = known(run("r", { steps: [step("running", { startedAt: AT }), step("held", { index: 1, endedAt: AT })] }));
  const half = { text: "half", percent: 50 };
  const all = withProgress(new Map(), runs, "r", 0, half);

  assert.deepEqual(all.get("r")?.get(0), half);
  assert.equal(withProgress(all, runs, "r", 1, half), all, "it has ended");
  assert.equal(withProgress(all, runs, "r", 2, half), all, "there is no such step");
  assert.equal(progressOf(all, runs), all);
  assert.equal(progressOf(all, known(run("r", { state: "cancelled" }))).size, 0);
});

// F8
test("what a tool said before the page listened is read with its run, and what was heard is never taken back", () => {
  const read = (percent: number, lastEvent = 4): Event =>
    ({ type: "runs", runs: [run("r", { lastEvent, steps: [step("running", { startedAt: AT, progress: { text: "", percent } })] })] });
  const hear = (percent: number): Event =>
    ({ type: "frame", frame: { op: "runProgress", session: "s", runId: "r", step: 0, progress: { text: "", percent } }, heardAt: 0 });
  const changed: Event = { type: "frame", frame: { op: "run", session: "s", run: run("r", { lastEvent: 5 }) }, heardAt: 0 };
  const ended: Event = { type: "frame", frame: { op: "run", session: "s", run: run("r", { lastEvent: 5, steps: [step("held", { endedAt: AT })] }) }, heardAt: 0 };
  const caughtUp: Event = { type: "frame", frame: { op: "caughtUp", session: "s", seq: 0 }, heardAt: 0 };
  const percent = (...events: Event[]) => events.reduce(reduce, initialState("user")).progress.get("r")?.get(0)?.percent;

  assert.equal(percent(caughtUp, read(50)), 50);
  assert.equal(percent(caughtUp, read(50), hear(70)), 70);
  assert.equal(percent(caughtUp, hear(70), read(50)), 70, "heard while it was being read");
  assert.equal(percent(caughtUp, changed, read(50)), 50, "the run has changed while it was being read");
  assert.equal(percent(caughtUp, ended, read(50)), undefined, "or has ended");
  assert.equal(percent(caughtUp, hear(20), caughtUp, read(50)), 50, "said while the connection was away");
});

// F8
test("frames and what was read meet in one place, and a run that is gone is gone", () => {
  const hear = (one: ToolRun): Event => ({ type: "frame", frame: { op: "run", session: "s", run: one }, heardAt: 0 });
  const progress: Event = { type: "frame", frame: { op: "runProgress", session: "s", runId: "r", step: 0, progress: { text: "x" } }, heardAt: 0 };
  const events: Event[] = [hear(run("r", { lastEvent: 4 })), progress, { type: "runs", runs: [run("r", { lastEvent: 2 }), run("q")] }];
  const state = events.reduce(reduce, initialState("user"));

  assert.equal(state.runs.get("r")?.lastEvent, 4);
  assert.equal(state.progress.get("r")?.get(0)?.text, "x");
  assert.deepEqual([...reduce(state, { type: "runGone", id: "r" }).runs.keys()], ["q"]);
});

test("a tool's name is plain, and only what has begun and not ended works", () => {
  assert.equal(plainName("local__image_draw"), "image_draw");
  assert.equal(plainName("github__search"), "github__search");
  assert.ok(isWorking(step("late", { startedAt: AT })));
  assert.ok(!isWorking(step("held", { startedAt: AT, endedAt: AT })));
  assert.ok(!isWorking(step("waiting")));
});
