import { strict as assert } from "node:assert/strict";
import { test } from "node:test";
import { readComing, readFrame, readLine, readQuickReplies } from "./shapes.ts";

const GOOD = { seq: 1, messageId: "m", from: "bot", source: "agent", text: "hi", createdAt: "2026-11-16T11:34:28.168Z", saidAt: "2026-11-16T11:34:28.168Z" };

// Q6
test("malformed quick replies are ignored, and the message is there", () => {
  for (const bad of ["yes", 3, {}, null, [], [1], ["a", null], ["a", ""], ["  "], Array(11).fill("x"), [["a"]], { length: 2 }]) {
    assert.equal(readQuickReplies(bad), undefined);
    const line = readLine({ ...GOOD, quickReplies: bad });
    assert.equal(line?.text, "hi");
    assert.equal(line?.quickReplies, undefined);
  }
  assert.deepEqual(readLine({ ...GOOD, quickReplies: ["a", "b"] })?.quickReplies, ["a", "b"]);
});

// G9
test("a line with broken fields is still a line, since a missing number would be a gap for ever", () => {
  const line = readLine({ seq: 5, text: 7, createdAt: "never", closes: "x", answer: [], dueAt: {}, questionState: "maybe" });

  assert.equal(line?.seq, 5);
  assert.equal(line?.text, "");
  assert.equal(line?.questionState, undefined);
  assert.equal(readLine({ ...GOOD, seq: 0 }), undefined);
  assert.equal(readLine({ ...GOOD, seq: 1.5 }), undefined);
  assert.equal(readLine("x"), undefined);
});

test("a frame that is none, or of an unknown kind, is nothing", () => {
  for (const bad of [null, 1, "x", [], {}, { op: 1 }, { op: "dance" }, { op: "message" }, { op: "draft", session: "s" }, { op: "sent" }]) {
    assert.equal(readFrame(bad), undefined);
  }
  assert.equal(readFrame({ op: "message", session: "s", ...GOOD })?.op, "message");
});

test("what is coming is shown as far as it can be read", () => {
  const item = { kind: "scheduled", id: "t", from: "bot", at: GOOD.saidAt, text: "tea" };

  assert.equal(readComing([item, { ...item, at: "soon" }, { ...item, kind: "x" }, null]).length, 1);
  assert.deepEqual(readComing("x"), []);
});

test("a message without text shows its payload", () => {
  assert.equal(readLine({ ...GOOD, text: "", payload: { a: 1 } })?.payloadText, '{\n "a": 1\n}');
  assert.ok((readLine({ ...GOOD, text: undefined, payload: "x".repeat(9999) })?.payloadText ?? "").length < 2100);
});
