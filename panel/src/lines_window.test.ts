import { strict as assert } from "node:assert/strict";
import { test } from "node:test";
import * as windows from "./lines_window.ts";
import type { Line } from "./types.ts";

function run(from: number, to: number): Line[] {
  return Array.from({ length: to - from + 1 }, (_, index) => ({ seq: from + index }) as Line);
}

test("a window never has more than its limit, wherever one scrolls", () => {
  const long = run(1, 10_000);
  let window = windows.atEnd(long);
  let sawFirst = false;
  for (let step = 0; step < 2400; step++) {
    window = step < 1200 ? windows.up(window, long) : windows.down(window, long);
    const shown = windows.within(long, window);
    assert.ok(shown.length <= windows.WINDOW_MAX);
    assert.equal(shown[0]?.seq, window.from);
    assert.equal(shown.at(-1)?.seq, window.to);
    sawFirst ||= window.from === 1;
  }
  assert.ok(sawFirst);
  assert.equal(window.to, 10_000);
});

test("lines that come in above do not move the window", () => {
  const before = windows.atEnd(run(101, 250));

  assert.deepEqual(windows.clamp(before, run(1, 250)), before);
});

test("a window over lines that are gone is the end of those that are there", () => {
  assert.deepEqual(windows.clamp({ from: 5, to: 9 }, run(100, 120)), { from: 100, to: 120 });
  assert.deepEqual(windows.clamp({ from: 5, to: 9 }, []), { from: 1, to: 0 });
  assert.deepEqual(windows.within([], { from: 1, to: 0 }), []);
});

test("a jump shows both sides of its line", () => {
  const window = windows.around(run(1, 500), 250);

  assert.ok(window.from < 250 && window.to > 250);
  assert.deepEqual(windows.around(run(1, 500), 3).from, 1);
});
