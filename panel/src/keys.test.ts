import { strict as assert } from "node:assert/strict";
import { test } from "node:test";
import { isSendKey } from "./composer.tsx";
import { placeForDigit, placeForKey } from "./quick_replies.tsx";
import { snippet } from "./search.tsx";
import { backoff } from "./socket.ts";

test("Enter sends, but not with Shift and not while a word is being composed", () => {
  const enter = { key: "Enter", shiftKey: false, isComposing: false, keyCode: 13 };

  assert.ok(isSendKey(enter));
  assert.ok(!isSendKey({ ...enter, shiftKey: true }));
  assert.ok(!isSendKey({ ...enter, isComposing: true }));
  assert.ok(!isSendKey({ ...enter, keyCode: 229 }));
});

// Q7
test("arrows move among quick replies and come round, digits choose", () => {
  assert.equal(placeForKey("ArrowRight", 2, 3), 0);
  assert.equal(placeForKey("ArrowLeft", 0, 3), 2);
  assert.equal(placeForKey("End", 0, 3), 2);
  assert.equal(placeForKey("x", 0, 3), undefined);
  assert.deepEqual(["1", "9", "0", "a"].map((key) => placeForDigit(key, 10)), [0, 8, 9, undefined]);
  assert.equal(placeForDigit("4", 3), undefined);
});

test("a connection is tried again after 0.5 to 10 seconds, not by all at once", () => {
  assert.ok(backoff(0, 0) >= 250 && backoff(0, 1) <= 500);
  assert.equal(backoff(30, 1), 10_000);
  assert.ok(backoff(5, 0) < backoff(5, 1));
});

test("a result shows what was looked for", () => {
  const text = `${"a".repeat(500)}NEEDLE${"b".repeat(500)}`;

  assert.match(snippet(text, "needle"), /^…a+NEEDLEb+…$/);
  assert.equal(snippet("short", "x"), "short");
});
