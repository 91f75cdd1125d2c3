// All that the page knows, and how it changes. Events come in at one place, the views read; nothing here touches the page.
import * as outbox from "./outbox.ts";
import { addHistory, EMPTY_LOG, follow, startLive, type Log } from "./log.ts";
import { mergeRuns, progressOf, withProgress, withReadProgress, type AllProgress, type Runs } from "./runs.ts";
import type { Agent, ComingItem, Counts, Draft, Failure, Line, Millis, Phase, ServerFrame, Session, ToolRun } from "./types.ts";

export type Loading = "loading" | "ready" | Failure;

export interface Coming {
  session: string;
  items: readonly ComingItem[];
  more: boolean;
  failed: boolean;
}

export interface Notice {
  id: number;
  text: string;
  calm: boolean;
}

/** A line to go to. The count tells two jumps to the same line apart. */
export interface Jump {
  session: string;
  seq: number;
  count: number;
}

export interface State {
  phase: Phase;
  version: string;
  person: string;
  timezone: string;
  /** Server's clock minus the browser's. */
  offset: Millis;
  sessions: ReadonlyMap<string, Session>;
  sessionsLoaded: boolean;
  /** Why the list could not be read, until it could. */
  sessionsFailure: Failure | undefined;
  current: string | undefined;
  logs: ReadonlyMap<string, Log>;
  loading: ReadonlyMap<string, Loading>;
  jump: Jump | undefined;
  outbox: readonly outbox.Entry[];
  drafts: readonly Draft[];
  /** Drafts that have ended: what still comes of them within a moment is old. Their ids may be used again. */
  endedDrafts: readonly { session: string; draftId: string; at: Millis }[];
  /** Of the chats whose lines are in memory. */
  runs: Runs;
  progress: AllProgress;
  coming: Coming | undefined;
  counts: Counts | undefined;
  seen: Readonly<Record<string, number>>;
  notices: readonly Notice[];
  /** By question: what the loser of a race was told. */
  told: ReadonlyMap<string, string>;
  agents: readonly Agent[];
  people: readonly string[];
}

export type Event =
  | { type: "phase"; phase: Phase }
  | { type: "frame"; frame: ServerFrame; heardAt: Millis }
  | { type: "offset"; offset: Millis }
  | { type: "sessions"; sessions: readonly Session[] }
  | { type: "sessionsFailed"; failure: Failure }
  | { type: "session"; session: Session }
  | { type: "preview"; session: string; line: Line }
  | { type: "current"; session: string | undefined }
  | { type: "loading"; session: string; loading: Loading }
  | { type: "newest"; session: string; lines: readonly Line[]; last: number }
  | { type: "history"; session: string; lines: readonly Line[] }
  | { type: "jump"; session: string; seq: number }
  | { type: "outbox"; entries: readonly outbox.Entry[] }
  | { type: "coming"; coming: Coming }
  | { type: "runs"; runs: readonly ToolRun[] }
  | { type: "runGone"; id: string }
  | { type: "seen"; session: string; seq: number }
  | { type: "allSeen"; seen: Readonly<Record<string, number>> }
  | { type: "notice"; text: string; calm: boolean }
  | { type: "dismiss"; id: number }
  | { type: "draftsBefore"; heardAt: Millis }
  | { type: "agents"; agents: readonly Agent[] }
  | { type: "people"; people: readonly string[] };

const LOGS_MAX = 6; // conversations whose lines stay in memory; the others are read again
const ENDED_DRAFTS_MAX = 50;
const DRAFT_ENDED_FOR = 1000;
const DRAFTS_MAX = 20;
const NOTICES_MAX = 4;
const PREVIEW_MAX = 200;

export function initialState(person: string): State {
  return {
    phase: "connecting", version: "", person, timezone: "UTC", offset: 0, sessions: new Map(), sessionsLoaded: false,
    sessionsFailure: undefined, current: undefined, logs: new Map(), loading: new Map(), jump: undefined, outbox: [], drafts: [], endedDrafts: [],
    runs: new Map(), progress: new Map(), coming: undefined, counts: undefined, seen: {}, notices: [], told: new Map(), agents: [], people: [],
  };
}

function put<K, V>(map: ReadonlyMap<K, V>, key: K, value: V): ReadonlyMap<K, V> {
  return new Map(map).set(key, value);
}

export function logOf(state: State, session: string): Log {
  return state.logs.get(session) ?? EMPTY_LOG;
}

/** Keeps the logs that were used last; a Map remembers the order in which its keys were put. */
function putLog(state: State, session: string, log: Log): State {
  const logs = new Map(state.logs);
  logs.delete(session);
  logs.set(session, log);
  const surplus = [...logs.keys()].filter((id) => id !== state.current).slice(0, Math.max(0, logs.size - LOGS_MAX));
  for (const id of surplus) logs.delete(id);
  const loading = surplus.length === 0 ? state.loading : new Map([...state.loading].filter(([id]) => !surplus.includes(id)));
  const runs = surplus.length === 0 ? state.runs : new Map([...state.runs].filter(([, run]) => !surplus.includes(run.session)));
  return { ...state, logs, loading, runs };
}

function withPreview(state: State, id: string, seq: number, from: string, text: string, at: string): State {
  const session = state.sessions.get(id);
  if (!session || seq < session.lastSeq || (seq === session.lastSeq && session.lastText !== undefined)) return state;
  const changed = { ...session, lastSeq: seq, lastFrom: from, lastText: text.slice(0, PREVIEW_MAX), lastAt: at };
  return { ...state, sessions: put(state.sessions, id, changed) };
}

function previewOf(state: State, id: string, line: Line): State {
  return withPreview(state, id, line.seq, line.from, line.text, line.saidAt);
}

function withSeen(state: State, session: string, seq: number): State {
  if ((state.seen[session] ?? 0) >= seq) return state;
  return { ...state, seen: { ...state.seen, [session]: seq } };
}

function endDraft(state: State, session: string, draftId: string, at: Millis): State {
  const endedDrafts = [...state.endedDrafts, { session, draftId, at }].slice(-ENDED_DRAFTS_MAX);
  const drafts = state.drafts.filter((draft) => draft.session !== session || draft.draftId !== draftId);
  return { ...state, endedDrafts, drafts };
}

function onLine(state: State, session: string, line: Line, heardAt: Millis): State {
  const { log, outcome } = follow(logOf(state, session), line);
  if (outcome !== "added") return line.draftId === undefined ? state : endDraft(state, session, line.draftId, heardAt);
  const withLog = previewOf(putLog(state, session, log), session, line);
  const settled = { ...withLog, outbox: outbox.settle(outbox.dropFailedPresses(withLog.outbox, line.closes), session, log.live ?? 0) };
  return line.draftId === undefined ? settled : endDraft(settled, session, line.draftId, heardAt);
}

function onDraft(state: State, frame: ServerFrame & { op: "draft" }, heardAt: Millis): State {
  const { session, draftId, from, text } = frame;
  if (frame.done) return endDraft(state, session, draftId, heardAt);
  const same = (each: { session: string; draftId: string }): boolean => each.session === session && each.draftId === draftId;
  if (state.endedDrafts.some((each) => same(each) && heardAt - each.at < DRAFT_ENDED_FOR)) return state;
  const draft: Draft = { session, draftId, from, text, heardAt };
  const drafts = state.drafts.some(same)
    ? state.drafts.map((each) => (same(each) ? draft : each))
    : [...state.drafts, draft].slice(-DRAFTS_MAX);
  return { ...state, drafts };
}

const OVER: readonly string[] = ["already_answered", "question_closed"];

function onError(state: State, frame: ServerFrame & { op: "error" }): State {
  const entry = state.outbox.find((each) => each.key === frame.key);
  if (!entry || frame.key === undefined) return state;
  if (entry.inReplyTo !== undefined && OVER.includes(frame.error)) {
    const told = put(state.told, entry.inReplyTo, frame.message);
    return { ...state, told, outbox: outbox.remove(state.outbox, frame.key) };
  }
  return { ...state, outbox: outbox.markRefused(state.outbox, frame.key, frame.error, frame.message) };
}

function onSent(state: State, frame: ServerFrame & { op: "sent" }): State {
  const entries = outbox.markSent(state.outbox, frame.key, frame.seq);
  return { ...state, outbox: outbox.settle(entries, frame.session, logOf(state, frame.session).live ?? 0) };
}

function onActivity(state: State, frame: ServerFrame & { op: "activity" }, at: string): State {
  const next = withPreview(state, frame.session, frame.seq, frame.from, frame.text, at);
  // Whoever writes in a chat elsewhere has read it there.
  return frame.from === state.person ? withSeen(next, frame.session, frame.seq) : next;
}

function withRuns(state: State, runs: Runs): State {
  return runs === state.runs ? state : { ...state, runs, progress: progressOf(state.progress, runs) };
}

function onRuns(state: State, read: readonly ToolRun[]): State {
  const runs = mergeRuns(state.runs, read);
  const progress = withReadProgress(state.progress, runs, read);
  return withRuns(progress === state.progress ? state : { ...state, progress }, runs);
}

function withoutRun(state: State, id: string): State {
  return withRuns(state, new Map([...state.runs].filter(([each]) => each !== id)));
}

function onProgress(state: State, frame: ServerFrame & { op: "runProgress" }): State {
  const progress = withProgress(state.progress, state.runs, frame.runId, frame.step, frame.progress);
  return progress === state.progress ? state : { ...state, progress };
}

function onFrame(state: State, frame: ServerFrame, heardAt: Millis): State {
  switch (frame.op) {
    case "welcome":
      // What a server that has been restarted was streaming is gone.
      return { ...state, phase: "online", version: frame.version, timezone: frame.timezone, drafts: [] };
    case "message": return onLine(state, frame.session, frame.line, heardAt);
    case "activity": return onActivity(state, frame, new Date(heardAt + state.offset).toISOString());
    case "sent": return onSent(state, frame);
    case "error": return onError(state, frame);
    case "draft": return onDraft(state, frame, heardAt);
    case "run": return withRuns(state, mergeRuns(state.runs, [frame.run]));
    case "runProgress": return onProgress(state, frame);
    case "counts": return { ...state, counts: frame.counts };
    case "stopping": return { ...state, phase: "stopping" };
    // Runs are read from here on, and with them what was said meanwhile.
    case "caughtUp": return { ...state, progress: new Map() };
    case "coming": case "pong": return state;
  }
}

/** What is known of the last lines stays when the list is read again. */
function withSessions(state: State, read: readonly Session[]): State {
  const sessions = new Map(read.map((each): [string, Session] => {
    const known = state.sessions.get(each.id);
    return [each.id, known && known.lastSeq >= each.lastSeq ? known : each];
  }));
  for (const [id, session] of state.sessions) if (!sessions.has(id)) sessions.set(id, session);
  return { ...state, sessions, sessionsLoaded: true, sessionsFailure: undefined };
}

function withPhase(state: State, phase: Phase): State {
  return { ...state, phase, outbox: phase === "online" ? state.outbox : outbox.requeue(state.outbox) };
}

function withNewest(state: State, event: Event & { type: "newest" }): State {
  const log = startLive(logOf(state, event.session), event.lines, event.last);
  const last = event.lines[event.lines.length - 1];
  const next = putLog(state, event.session, log);
  return { ...(last ? previewOf(next, event.session, last) : next), loading: put(next.loading, event.session, "ready") };
}

let noticeCount = 0;

export function reduce(state: State, event: Event): State {
  switch (event.type) {
    case "phase": return withPhase(state, event.phase);
    case "frame": return onFrame(state, event.frame, event.heardAt);
    case "offset": return { ...state, offset: event.offset };
    case "sessions": return withSessions(state, event.sessions);
    case "sessionsFailed": return { ...state, sessionsFailure: event.failure };
    case "session": return { ...state, sessions: put(state.sessions, event.session.id, event.session) };
    case "preview": return previewOf(state, event.session, event.line);
    case "current": return { ...state, current: event.session, jump: undefined, coming: undefined };
    case "loading": return { ...state, loading: put(state.loading, event.session, event.loading) };
    case "newest": return withNewest(state, event);
    case "history": return putLog(state, event.session, addHistory(logOf(state, event.session), event.lines));
    case "jump": return { ...state, jump: { session: event.session, seq: event.seq, count: (state.jump?.count ?? 0) + 1 } };
    case "outbox": return { ...state, outbox: event.entries };
    case "coming": return event.coming.session === state.current ? { ...state, coming: event.coming } : state;
    case "runs": return onRuns(state, event.runs);
    case "runGone": return withoutRun(state, event.id);
    case "seen": return withSeen(state, event.session, event.seq);
    case "allSeen": return { ...state, seen: event.seen };
    case "notice": {
      const notice = { id: ++noticeCount, text: event.text, calm: event.calm };
      return { ...state, notices: [...state.notices, notice].slice(-NOTICES_MAX) };
    }
    case "dismiss": return { ...state, notices: state.notices.filter((notice) => notice.id !== event.id) };
    case "draftsBefore": return { ...state, drafts: state.drafts.filter((draft) => draft.heardAt >= event.heardAt) };
    case "agents": return { ...state, agents: event.agents };
    case "people": return { ...state, people: event.people };
  }
}

/** Newest first. */
export function sessionsInOrder(state: State): Session[] {
  return [...state.sessions.values()].sort((a, b) => Date.parse(b.lastAt) - Date.parse(a.lastAt) || (a.id < b.id ? 1 : -1));
}

export function lastKnown(state: State, session: Session): number {
  return Math.max(session.lastSeq, state.logs.get(session.id)?.live ?? 0);
}

export function unreadOf(state: State, session: Session): number {
  return Math.max(0, lastKnown(state, session) - (state.seen[session.id] ?? 0));
}

export function unreadInAll(state: State): number {
  return [...state.sessions.values()].reduce((sum, session) => sum + unreadOf(state, session), 0);
}

export function sessionName(session: Session): string {
  return session.title || session.agents.join(", ") || session.users.join(", ") || session.id;
}
