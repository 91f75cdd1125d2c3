import { strict as assert } from "node:assert/strict";
import { test } from "node:test";
import { countdown, dayAndTime, dayHeading, duration, left, precise, punctuality, size, stopwatch, tomorrowAtNine } from "./times.ts";

const NOW = new Date(2026, 10, 18, 15, 20, 0).getTime(); // a Wednesday, local time
const S = 1000;
const MIN = 60 * S;
const H = 60 * MIN;

test("a countdown says how long while it is short, and which day when it is long", () => {
  const table: [number, string, string][] = [
    [-5 * S, "now", "现在"],
    [0, "now", "现在"],
    [1, "in 1 s", "1 秒后"],
    [12 * S, "in 12 s", "12 秒后"],
    [59_001, "in 1 min", "1 分后"],
    [3 * MIN + 5 * S, "in 3 min 5 s", "3 分 5 秒后"],
    [3 * H + 5 * MIN, "in 3 h 5 min", "3 小时 5 分后"],
    [17 * H + 40 * MIN, "tomorrow 09:00", "明天 09:00"],
    [41 * H + 40 * MIN, "Fri 09:00", "周五 09:00"],
    [15 * 24 * H, "3 Dec 15:20", "12月3日 15:20"],
    [400 * 24 * H, "23 Dec 2027 15:20", "2027年12月23日 15:20"],
  ];
  for (const [left, en, zh] of table) {
    assert.equal(countdown(NOW + left, NOW, "en"), en);
    assert.equal(countdown(NOW + left, NOW, "zh"), zh);
  }
});

test("durations have their two largest units", () => {
  assert.equal(duration(90 * S, "en"), "1 min 30 s");
  assert.equal(duration(2 * H, "en"), "2 h");
  assert.equal(duration(49 * H, "zh"), "2 天 1 小时");
  assert.equal(precise(3, "en"), "3 ms");
  assert.equal(precise(412, "en"), "0.4 s");
  assert.equal(precise(75 * S, "en"), "1 min 15 s");
});

test("days have their words", () => {
  assert.equal(dayHeading(NOW, NOW, "en"), "Today");
  assert.equal(dayHeading(NOW - 24 * H, NOW, "zh"), "昨天");
  // Some versions of Unicode's data put a comma behind the weekday.
  assert.equal(dayHeading(NOW - 72 * H, NOW, "en").replace(",", ""), "Sunday 15 November");
  assert.equal(dayAndTime(NOW, NOW, "en"), "today 15:20");
  assert.equal(new Date(tomorrowAtNine(NOW)).getHours(), 9);
  assert.ok(tomorrowAtNine(NOW) > NOW);
});

test("a message is on time, late or early", () => {
  assert.deepEqual(punctuality(1000, 1003), { kind: "onTime", by: 3 });
  assert.deepEqual(punctuality(1000, 990), { kind: "onTime", by: 0 });
  assert.deepEqual(punctuality(1000, 1412), { kind: "late", by: 412 });
  assert.deepEqual(punctuality(9000, 1000), { kind: "early", by: 8000 });
});

test("sizes are said in the unit that fits", () => {
  assert.deepEqual([size(12), size(34_000), size(1_048_576)], ["12 B", "34 kB", "1.0 MB"]);
});

test("a watch shows what has passed, and what is left rounded up", () => {
  assert.equal(stopwatch(7999), "0:07");
  assert.equal(stopwatch(725_000), "12:05");
  assert.equal(stopwatch(3_723_000), "1:02:03");
  assert.equal(stopwatch(-5), "0:00");
  assert.equal(left(72_001, 0), "1:13");
  assert.equal(left(0, 0), undefined);
  assert.equal(left(13 * 3_600_000, 0), undefined);
});
