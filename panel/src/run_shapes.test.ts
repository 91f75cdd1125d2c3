import { strict as assert } from "node:assert/strict";
import { test } from "node:test";
import { readProgress, readRun, readRuns, readStepDetails, readToolLine } from "./run_shapes.ts";
import { readComing, readFrame, readLine } from "./shapes.ts";

const AT = "2026-11-16T11:34:28.168Z";
const STEP = { stepIndex: 0, aiName: "local__image_draw", state: "held", dependsOn: [], timeoutMs: 60000, feedbackAt: AT, startedAt: AT, schedule: "in 2 minutes" };
const RUN = { runId: "r1", state: "running", sessionId: "s", createdAt: AT, lastEvent: 3, afterSeq: 7, steps: [STEP] };

// F8
test("a run is read with its steps", () => {
  const run = readRun({ ...RUN, title: "Draw", steps: [{ ...STEP, schedule: { when: "in 2 minutes", timezone: "UTC" }, past: true, progress: 40 }] });

  assert.equal(run?.id, "r1");
  assert.equal(run?.title, "Draw");
  assert.equal(run?.afterSeq, 7);
  assert.deepEqual(run?.steps[0], { index: 0, aiName: "local__image_draw", state: "held", dependsOn: [], schedule: "in 2 minutes", feedbackAt: AT, startedAt: AT, past: true, progress: { text: "", percent: 40 } });
});

// F8
test("whatever is broken in a run spoils no more than itself, and unknown states are words", () => {
  const run = readRun({ runId: "r", state: 7, createdAt: "never", lastEvent: -1, afterSeq: "x", title: [], endedAt: 3,
    steps: [null, "x", { state: "dancing", dependsOn: [0, "1", -1], feedbackAt: "soon", error: { code: "boom" } }, { aiName: 3, stepIndex: 1.5, error: [] }] }, "s");

  assert.equal(run?.state, "unknown");
  assert.equal(run?.session, "s");
  assert.equal(run?.lastEvent, 0);
  assert.deepEqual(run?.steps, [
    { index: 2, aiName: "?", state: "dancing", dependsOn: [0], error: "boom" },
    { index: 3, aiName: "?", state: "unknown", dependsOn: [] },
  ]);
  assert.deepEqual(readRun({ runId: "r", steps: "none" }, "s")?.steps, []);
});

test("what names no run or no chat is none", () => {
  for (const bad of [null, 1, "x", [], {}, { runId: "" }, { runId: 3, sessionId: "s" }, { runId: "r" }]) assert.equal(readRun(bad), undefined);
  assert.equal(readRuns([RUN, null, {}], "s").length, 1);
  assert.deepEqual(readRuns("x", "s"), []);
});

test("frames of runs are read, and those that make no sense are none", () => {
  assert.equal(readFrame({ op: "run", session: "s", run: RUN })?.op, "run");
  assert.equal(readFrame({ op: "run", session: "s" }), undefined);
  assert.deepEqual(readFrame({ op: "runProgress", session: "s", runId: "r1", stepIndex: 2, progress: { text: "half", percent: 50 } }),
    { op: "runProgress", session: "s", runId: "r1", step: 2, progress: { text: "half", percent: 50 } });
  assert.equal(readFrame({ op: "runProgress", session: "s", progress: {} }), undefined);
});

test("a tool may say anything about its progress", () => {
  assert.deepEqual(readProgress("drawing"), { text: "drawing" });
  assert.deepEqual(readProgress(40), { text: "", percent: 40 });
  assert.deepEqual(readProgress({ percent: 170 }), { text: "", percent: 100 });
  assert.deepEqual(readProgress({ percent: "x", text: "half" }), { text: "half" });
  assert.deepEqual(readProgress({ step: 2 }), { text: '{"step":2}' });
  assert.deepEqual(readProgress([true]), { text: "[true]" });
  assert.equal(readProgress(null), undefined);
  assert.ok((readProgress("x".repeat(9999))?.text.length ?? 0) < 400);
});

test("the details of a step are JSON to be read, with the planned arguments where there are no others", () => {
  const read = readStepDetails({ steps: [{ stepIndex: 0, draftArgs: { a: 1 }, args: { a: 2 }, data: null }, { draftArgs: {} }, 3] });

  assert.deepEqual(read, [{ index: 0, args: '{\n  "a": 2\n}', data: "null" }, { index: 1, args: "{}" }]);
  assert.deepEqual(readStepDetails(undefined), []);
});

test("the line of a tool knows its run and its files, as far as they can be read", () => {
  const run = { runId: "r1", stepIndex: 1, aiName: "local__image_draw", type: "tool_result", data: { files: [{ name: "a.png", mimeType: "image/png", bytes: 70 }, { name: 3 }, null, { name: "b" }] } };
  const line = readLine({ seq: 1, source: "tool", text: "here", payload: { text: "here", run } });

  assert.deepEqual(line?.tool, { runId: "r1", stepIndex: 1, aiName: "local__image_draw", files: [{ name: "a.png", mimeType: "image/png", bytes: 70 }, { name: "b", mimeType: "" }] });
  assert.deepEqual(readToolLine({ ...run, data: "cut off" })?.files, []);
  assert.equal(readToolLine({ aiName: "x" }), undefined);
  assert.equal(readLine({ seq: 1, payload: { run: "x" } })?.tool, undefined);
});

// F3
test("results that are held are among what is coming, if they say of which run", () => {
  const item = { kind: "run", id: "r1-0", runId: "r1", stepIndex: 0, from: "local__image_draw", text: "image_draw", at: AT, state: "held" };

  assert.equal(readComing([item])[0]?.runId, "r1");
  assert.equal(readComing([item])[0]?.state, "held");
  assert.deepEqual(readComing([{ ...item, runId: undefined }]), []);
});
