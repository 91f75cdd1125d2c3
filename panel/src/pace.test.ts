import { strict as assert } from "node:assert/strict";
import { test } from "node:test";
import { Pace, type Timers } from "./pace.ts";

/** Time that goes on when a test says so. */
class FakeTimers implements Timers {
  private time = 0;
  private due: { at: number; run: () => void }[] = [];

  now(): number {
    return this.time;
  }

  after(milliseconds: number, run: () => void): () => void {
    const timer = { at: this.time + milliseconds, run };
    this.due.push(timer);
    return () => { this.due = this.due.filter((each) => each !== timer); };
  }

  pass(milliseconds: number): void {
    const end = this.time + milliseconds;
    for (;;) {
      const next = this.due.filter((each) => each.at <= end).sort((a, b) => a.at - b.at)[0];
      if (!next) break;
      this.due = this.due.filter((each) => each !== next);
      this.time = next.at;
      next.run();
    }
    this.time = end;
  }

  get waiting(): number {
    return this.due.length;
  }
}

function paced(): { timers: FakeTimers; shown: [number, string][]; pace: Pace<string> } {
  const timers = new FakeTimers();
  const shown: [number, string][] = [];
  const pace = new Pace<string>("", 250, (text) => shown.push([timers.now(), text]), timers);
  return { timers, shown, pace };
}

// G18
test("what grows every ten milliseconds is shown four times a second, each time the latest", () => {
  const { timers, shown, pace } = paced();
  for (let count = 1; count <= 200; count++) {
    timers.pass(10);
    pace.put("x".repeat(count));
  }
  assert.deepEqual(shown.map(([at]) => at), [250, 500, 750, 1000, 1250, 1500, 1750, 2000]);
  assert.ok(shown.every(([at, text]) => text.length >= at / 10 - 1));
});

// G18
test("the last of it is always shown, without anything coming after it, and then no timer is left", () => {
  const { timers, shown, pace } = paced();
  timers.pass(100);
  pace.put("a");
  pace.put("ab");
  timers.pass(1000);
  assert.deepEqual(shown, [[250, "ab"]]);
  assert.equal(timers.waiting, 0);
});

// G18
test("what comes after a pause is shown at once", () => {
  const { timers, shown, pace } = paced();
  timers.pass(5000);
  pace.put("a");
  assert.deepEqual(shown, [[5000, "a"]]);
  assert.equal(timers.waiting, 0);
});

// G18
test("what is shown already is not shown again, and nothing is shown after the end", () => {
  const { timers, shown, pace } = paced();
  pace.put("");
  assert.equal(timers.waiting, 0);
  pace.put("a");
  pace.end();
  timers.pass(1000);
  assert.deepEqual(shown, []);
  assert.equal(timers.waiting, 0);
});
