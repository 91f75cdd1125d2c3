import { strict as assert } from "node:assert/strict";
import { test } from "node:test";
import { initialState, logOf, reduce, sessionsInOrder, unreadInAll, unreadOf, type Event, type State } from "./state.ts";
import type { Entry } from "./outbox.ts";
import type { Line, ServerFrame, Session } from "./types.ts";

const AT = "2026-11-16T11:34:28.168Z";

function line(seq: number, more: Partial<Line> = {}): Line {
  return { seq, messageId: `m${seq}`, from: "bot", source: "agent", text: `line ${seq}`, createdAt: AT, saidAt: AT, ...more };
}

function session(id: string, more: Partial<Session> = {}): Session {
  return { id, kind: "private", timezone: "UTC", users: ["user"], agents: ["bot"], lastSeq: 0, lastAt: AT, ...more };
}

function after(events: readonly Event[], state: State = initialState("user")): State {
  return events.reduce(reduce, state);
}

function frame(given: ServerFrame, heardAt = 0): Event {
  return { type: "frame", frame: given, heardAt };
}

const OPEN: Event[] = [
  { type: "sessions", sessions: [session("s")] },
  { type: "current", session: "s" },
  { type: "newest", session: "s", lines: [], last: 0 },
];

function press(key: string): Entry {
  return { key, person: "user", session: "s", text: "rice", inReplyTo: "m1", quickReplyIndex: 1, at: 0, state: "sending", after: 1 };
}

// Q7
test("the loser of a race is told, and nothing of it is sent again", () => {
  const state = after([...OPEN, { type: "outbox", entries: [press("k")] },
    frame({ op: "error", key: "k", error: "already_answered", message: "the question was answered by ann: rice" })]);

  assert.deepEqual(state.outbox, []);
  assert.equal(state.told.get("m1"), "the question was answered by ann: rice");
});

// Q7
test("a press that fails for another reason stays, to be tried again", () => {
  const state = after([...OPEN, { type: "outbox", entries: [press("k")] }, frame({ op: "error", key: "k", error: "disk_full", message: "no space" })]);

  assert.equal(state.outbox[0]?.state, "failed");
  assert.equal(state.told.size, 0);
});

test("a draft grows, and its final line takes its place", () => {
  const draft = (text: string): Event => frame({ op: "draft", session: "s", draftId: "d", from: "bot", text, done: false });
  const writing = after([...OPEN, draft("so"), draft("so far")]);
  const said = after([frame({ op: "message", session: "s", line: line(1, { draftId: "d" }) }), draft("late")], writing);

  assert.deepEqual(writing.drafts.map((each) => each.text), ["so far"]);
  assert.deepEqual(said.drafts, []);
});

test("the id of a draft can be used again, and a draft that is given up goes", () => {
  const draft = (heardAt: number, done: boolean): Event => frame({ op: "draft", session: "s", draftId: "d", from: "bot", text: "x", done }, heardAt);

  assert.equal(after([...OPEN, draft(0, false), draft(10, true)]).drafts.length, 0);
  assert.equal(after([...OPEN, draft(0, false), draft(10, true), draft(5000, false)]).drafts.length, 1);
});

// G9
test("a frame that leaves a gap changes nothing, and one that came before changes nothing", () => {
  const state = after([...OPEN, frame({ op: "message", session: "s", line: line(1) })]);

  assert.equal(reduce(state, frame({ op: "message", session: "s", line: line(3) })), state);
  assert.equal(reduce(state, frame({ op: "message", session: "s", line: line(1) })), state);
  assert.equal(logOf(state, "s").live, 1);
});

test("what is unread is counted by chat and in all, and what one says elsewhere is read", () => {
  const activity = (seq: number, from: string): Event => frame({ op: "activity", session: "t", seq, from, source: "agent", text: "hi" });
  const base: Event[] = [{ type: "sessions", sessions: [session("s", { lastSeq: 4 }), session("t", { lastSeq: 1 })] },
    { type: "allSeen", seen: { s: 4, t: 1 } }];

  const heard = after([...base, activity(2, "bot"), activity(3, "bot")]);
  const wrote = after([activity(4, "user")], heard);

  assert.equal(unreadOf(heard, heard.sessions.get("t") ?? session("")), 2);
  assert.equal(unreadInAll(heard), 2);
  assert.equal(heard.sessions.get("t")?.lastText, "hi");
  assert.equal(unreadInAll(wrote), 0);
});

test("chats stand in the order of what was said last", () => {
  const later = "2026-11-16T12:00:00.000Z";
  const state = after([{ type: "sessions", sessions: [session("a"), session("b", { lastAt: later })] }]);

  assert.deepEqual(sessionsInOrder(state).map((each) => each.id), ["b", "a"]);
});

test("an entry goes when its line is there, whichever of confirmation and line comes first", () => {
  const entry: Entry = { key: "k", person: "user", session: "s", text: "hi", at: 0, state: "sending", after: 0 };
  const sent = frame({ op: "sent", key: "k", session: "s", messageId: "m1", seq: 1, warnings: [] });
  const said = frame({ op: "message", session: "s", line: line(1, { source: "user", from: "user", text: "hi" }) });
  const before: Event[] = [...OPEN, { type: "outbox", entries: [entry] }];

  assert.deepEqual(after([...before, sent, said]).outbox, []);
  assert.deepEqual(after([...before, said, sent]).outbox, []);
});

test("the lines of chats that were not looked at for long are forgotten, not those of the open one", () => {
  const ids = ["s", "a", "b", "c", "d", "e", "f", "g"];
  const state = after([...OPEN, ...ids.slice(1).map((id): Event => ({ type: "newest", session: id, lines: [line(1)], last: 1 }))]);

  assert.ok(state.logs.has("s"));
  assert.ok(!state.logs.has("a"));
  assert.ok(state.logs.has("g"));
});
