import { strict as assert } from "node:assert/strict";
import { test } from "node:test";
import * as outbox from "./outbox.ts";

function entry(key: string, more: Partial<outbox.Entry> = {}): outbox.Entry {
  return { key, person: "user", session: "s", text: `text ${key}`, at: 0, state: "queued", after: 0, ...more };
}

function said(seq: number, text: string, more: Partial<outbox.Said> = {}): outbox.Said {
  return { seq, from: "user", text, ...more };
}

// Q7
test("a retry keeps its key, so that it cannot be said twice", () => {
  const failed = outbox.markRefused([entry("a", { state: "sending" })], "a", "disk_full", "no space");
  const again = outbox.retry(failed, "a");

  assert.deepEqual(failed[0], entry("a", { state: "failed", error: "disk_full", message: "no space" }));
  assert.deepEqual(again, [entry("a")]);
});

test("a server that stops refuses nothing: what was typed waits for the next connection", () => {
  const entries = outbox.markRefused([entry("a", { state: "sending" })], "a", "stopping", "about to end");

  assert.equal(entries[0]?.state, "queued");
});

test("what was on its way when the connection broke goes out again, in the order of typing", () => {
  const entries = outbox.requeue([entry("a", { state: "sending" }), entry("b"), entry("c", { state: "failed" })]);

  assert.deepEqual(outbox.waiting(entries, "user").map((each) => each.key), ["a", "b"]);
  assert.deepEqual(outbox.waiting(entries, "ann"), []);
});

test("a line that comes before its confirmation hides the entry, and only one of two equal ones", () => {
  const entries = [entry("a", { state: "sending", text: "hi" }), entry("b", { state: "sending", text: "hi" })];

  assert.deepEqual(outbox.shown(entries, "s", "user", []).map((each) => each.key), ["a", "b"]);
  assert.deepEqual(outbox.shown(entries, "s", "user", [said(1, "hi")]).map((each) => each.key), ["b"]);
  assert.deepEqual(outbox.shown(entries, "s", "user", [said(1, "hi"), said(2, "hi")]), []);
  assert.deepEqual(outbox.shown(entries, "s", "user", [said(1, "hi", { from: "bot" })]).length, 2);
});

test("an older line with the same text hides nothing", () => {
  const entries = [entry("a", { state: "sending", text: "hi", after: 7 })];

  assert.equal(outbox.shown(entries, "s", "user", [said(7, "hi")]).length, 1);
});

test("a confirmed entry stays until its line is there", () => {
  const entries = outbox.markSent([entry("a", { state: "sending" })], "a", 4);

  assert.equal(outbox.shown(entries, "s", "user", [said(3, "other")]).length, 1);
  assert.equal(outbox.shown(entries, "s", "user", [said(4, "text a")]).length, 0);
  assert.equal(outbox.settle(entries, "s", 3).length, 1);
  assert.equal(outbox.settle(entries, "s", 4).length, 0);
});

test("what is stored comes back as it was, and what was being sent waits again", () => {
  const entries = [entry("a", { state: "sending" }), entry("b", { state: "failed", error: "e", message: "m" }), entry("c", { state: "sent", seq: 3 })];

  const back = outbox.restore(outbox.stored(entries));

  assert.deepEqual(back.map((each) => [each.key, each.state]), [["a", "queued"], ["b", "failed"]]);
  assert.deepEqual(outbox.restore("broken"), []);
  assert.deepEqual(outbox.restore('[{"key":1}, null, 3]'), []);
  assert.deepEqual(outbox.restore(null), []);
});

test("the number of entries has a limit, and what waits already stays", () => {
  const entries = Array.from({ length: outbox.ENTRIES_MAX }, (_, count) => entry(String(count)));

  assert.ok(outbox.isFull(entries));
  assert.ok(!outbox.isFull(entries.slice(1)));
});

test("bytes are counted, not characters", () => {
  assert.equal(outbox.bytesOf("喝水"), 6);
});
