import { strict as assert } from "node:assert/strict";
import { test } from "node:test";
import { addHistory, EMPTY_LOG, firstSeq, follow, isLive, lastSeq, questionOf, runAround, startLive, type Log } from "./log.ts";
import type { Line } from "./types.ts";

function line(seq: number, more: Partial<Line> = {}): Line {
  const at = new Date(1_700_000_000_000 + seq * 1000).toISOString();
  return { seq, messageId: `m${seq}`, from: "bot", source: "agent", text: `line ${seq}`, createdAt: at, saidAt: at, ...more };
}

function lines(from: number, to: number): Line[] {
  return Array.from({ length: to - from + 1 }, (_, index) => line(from + index));
}

function seqs(log: Log): number[][] {
  return log.runs.map((run) => run.map((each) => each.seq));
}

/** A small generator of numbers that are the same in every run. */
function chances(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return state / 2 ** 31;
  };
}

// G9
test("a line that comes twice is there once, and one that comes too early is a gap", () => {
  const log = startLive(EMPTY_LOG, lines(1, 3), 3);

  const again = follow(log, line(3));
  const early = follow(log, line(5));
  const next = follow(log, line(4));

  assert.equal(again.outcome, "known");
  assert.equal(early.outcome, "gap");
  assert.equal(early.log, log);
  assert.deepEqual(seqs(next.log), [[1, 2, 3, 4]]);
  assert.equal(next.log.live, 4);
});

// G9
test("whatever is cut, doubled and read again, each number is there once and in order", () => {
  for (let seed = 1; seed <= 200; seed++) {
    const chance = chances(seed);
    const last = 80;
    let log = startLive(EMPTY_LOG, lines(40, 44), 44);
    for (let step = 0; step < 400; step++) {
      const live = log.live ?? 0;
      if (chance() < 0.5) log = follow(log, line(Math.max(1, Math.min(last, live - 3 + Math.floor(chance() * 6))))).log;
      else {
        const from = 1 + Math.floor(chance() * last);
        log = addHistory(log, lines(from, Math.min(last, from + Math.floor(chance() * 12))));
      }
      for (const run of log.runs) run.forEach((each, index) => assert.equal(each.seq, firstSeq(run) + index));
      log.runs.forEach((run, index) => index > 0 && assert.ok(firstSeq(run) > lastSeq(log.runs[index - 1] ?? []) + 1));
      assert.ok((log.live ?? 0) >= live, "the live number never goes back");
      const followed = runAround(log, log.live);
      assert.equal(lastSeq(followed), log.live);
    }
  }
});

test("runs that meet become one, and a jump sees only its own run", () => {
  const log = addHistory(startLive(EMPTY_LOG, lines(90, 100), 100), lines(10, 20));

  assert.deepEqual(log.runs.map((run) => [firstSeq(run), lastSeq(run)]), [[10, 20], [90, 100]]);
  assert.equal(lastSeq(runAround(log, 15)), 20);
  assert.equal(lastSeq(runAround(log, undefined)), 100);
  assert.ok(!isLive(log, runAround(log, 15)));

  const joined = addHistory(log, lines(21, 89));
  assert.deepEqual(joined.runs.map((run) => [firstSeq(run), lastSeq(run)]), [[10, 100]]);
  assert.ok(isLive(joined, runAround(joined, 15)));
});

test("a conversation without lines is followed from its first one", () => {
  const log = startLive(EMPTY_LOG, [], 0);

  assert.equal(log.live, 0);
  assert.ok(isLive(log, []));
  assert.deepEqual(seqs(follow(log, line(1)).log), [[1]]);
});

const QUESTION = line(1, { quickReplies: ["noodles", "rice"], questionState: "open" });

// Q7
test("the line that closes a question decides its state, whichever of the two came first", () => {
  const answer = line(2, { source: "user", from: "ann", text: "rice", inReplyTo: "m1", quickReplyIndex: 1, closes: ["m1"] });
  const live = follow(startLive(EMPTY_LOG, [QUESTION], 1), answer).log;
  const stale = addHistory(startLive(EMPTY_LOG, [answer], 2), [QUESTION]);

  for (const log of [live, stale]) {
    assert.deepEqual(questionOf(QUESTION, log.closings.get("m1")), { state: "answered", index: 1, text: "rice", by: "ann" });
  }
});

// Q7
test("a question is closed by what is typed, by a default and by its deadline", () => {
  const typed = line(2, { source: "user", from: "user", text: "pizza", closes: ["m1"] });
  const taken = line(2, { source: "system", from: "belfry", text: "rice", quickReplyIndex: 1, closes: ["m1"] });
  const over = line(2, { source: "system", from: "belfry", closes: ["m1"] });
  const other = line(2, { source: "user", from: "user", inReplyTo: "m0", quickReplyIndex: 1, closes: ["m0", "m1"] });

  assert.equal(questionOf(QUESTION, typed)?.state, "closed");
  assert.deepEqual(questionOf(QUESTION, taken), { state: "defaulted", index: 1, text: "rice", by: "belfry" });
  assert.equal(questionOf(QUESTION, over)?.state, "expired");
  assert.deepEqual(questionOf(QUESTION, other), { state: "closed", text: "line 2", by: "user" });
});

// Q7
test("without a closing line the state is what the server said", () => {
  const answered = { ...QUESTION, questionState: "answered" as const, answer: { index: 0, text: "noodles", by: "user" } };

  assert.equal(questionOf(QUESTION, undefined)?.state, "open");
  assert.deepEqual(questionOf(answered, undefined), { state: "answered", index: 0, text: "noodles", by: "user" });
  assert.equal(questionOf(line(1), undefined), undefined);
});
