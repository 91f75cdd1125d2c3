// Others' data becomes ours here or not at all: each function returns a checked value, or undefined for what makes no sense.
// A broken field spoils no more than itself: a message with malformed quick replies is a message without.
import { count, each, fieldsOf, given, instant, text, texts, type Fields } from "./fields.ts";
import { readProgress, readRun, readToolLine } from "./run_shapes.ts";
import type { Agent, Answer, ComingItem, ComingKind, Counts, Line, QuestionState, ServerFrame, Session } from "./types.ts";

export const QUICK_REPLIES_MAX = 10;
const PAYLOAD_SHOWN_MAX = 2000;

export function readQuickReplies(value: unknown): string[] | undefined {
  if (!Array.isArray(value) || value.length === 0 || value.length > QUICK_REPLIES_MAX) return undefined;
  const good = value.every((each) => typeof each === "string" && each.trim() !== "");
  return good ? (value as string[]) : undefined;
}

const STATES: readonly string[] = ["open", "answered", "closed", "defaulted", "expired"];

function readState(value: unknown): QuestionState | undefined {
  return typeof value === "string" && STATES.includes(value) ? (value as QuestionState) : undefined;
}

function readAnswer(value: unknown): Answer | undefined {
  const fields = fieldsOf(value);
  if (!fields) return undefined;
  return given<Answer>({ index: count(fields.index), text: text(fields.text), by: text(fields.by), at: instant(fields.at) });
}

function shownPayload(payload: unknown): string | undefined {
  if (payload === undefined || payload === null) return undefined;
  const json = JSON.stringify(payload, null, 1);
  return json.length > PAYLOAD_SHOWN_MAX ? `${json.slice(0, PAYLOAD_SHOWN_MAX)}…` : json;
}

export function readLine(value: unknown): Line | undefined {
  const fields = fieldsOf(value);
  const seq = count(fields?.seq);
  // A number is all that a line needs: one that was left out would be a gap that no asking again could fill.
  if (!fields || !seq) return undefined;
  const saidAt = instant(fields.saidAt) ?? instant(fields.createdAt) ?? new Date(0).toISOString();
  const said = text(fields.text) ?? "";
  const payload = fieldsOf(fields.payload);
  return {
    seq,
    messageId: text(fields.messageId) ?? `line-${seq}`,
    from: text(fields.from) ?? "",
    source: text(fields.source) ?? "agent",
    text: said,
    createdAt: instant(fields.createdAt) ?? saidAt,
    saidAt,
    ...given<Line>({
      to: text(fields.to),
      draftId: text(payload?.draftId),
      tool: readToolLine(payload?.run),
      payloadText: said === "" ? shownPayload(fields.payload) : undefined,
      quickReplies: readQuickReplies(fields.quickReplies),
      questionState: readState(fields.questionState),
      answerBy: instant(fields.answerBy),
      answer: readAnswer(fields.answer),
      inReplyTo: text(fields.inReplyTo),
      quickReplyIndex: count(fields.quickReplyIndex),
      closes: Array.isArray(fields.closes) ? texts(fields.closes) : undefined,
      dueAt: instant(fields.dueAt),
    }),
  };
}

/** The good ones among many; a line that makes no sense would otherwise hide all the others. */
export function readLines(value: unknown): Line[] {
  return each(value, readLine);
}

export function readSession(value: unknown): Session | undefined {
  const fields = fieldsOf(value);
  const id = text(fields?.sessionId);
  if (!fields || !id) return undefined;
  return {
    id,
    kind: fields.kind === "group" ? "group" : "private",
    timezone: text(fields.timezone) ?? "UTC",
    users: texts(fields.users),
    agents: texts(fields.agents),
    lastSeq: count(fields.lastSeq) ?? 0,
    lastAt: instant(fields.lastAt) ?? instant(fields.createdAt) ?? new Date(0).toISOString(),
    ...given<Session>({ title: text(fields.title), lastFrom: text(fields.lastFrom), lastText: text(fields.lastText) }),
  };
}

export function readSessions(value: unknown): Session[] {
  return each(value, readSession);
}

export function readAgents(value: unknown): Agent[] {
  if (!Array.isArray(value)) return [];
  return value.flatMap((each) => {
    const fields = fieldsOf(each);
    const id = text(fields?.id);
    return id ? [{ id, kind: text(fields?.kind) ?? "external" }] : [];
  });
}

export function readPeople(value: unknown): string[] {
  if (!Array.isArray(value)) return [];
  return value.flatMap((each) => text(each) ?? text(fieldsOf(each)?.id) ?? []);
}

const KINDS: readonly string[] = ["message", "scheduled", "question", "run"];

function readComingItem(value: unknown): ComingItem | undefined {
  const fields = fieldsOf(value);
  const id = text(fields?.id);
  const at = instant(fields?.at);
  if (!fields || !id || !at || typeof fields.kind !== "string" || !KINDS.includes(fields.kind)) return undefined;
  const runId = text(fields.runId);
  if (fields.kind === "run" && !runId) return undefined;
  return {
    kind: fields.kind as ComingKind,
    id,
    at,
    from: text(fields.from) ?? "",
    text: text(fields.text) ?? "",
    ...given<ComingItem>({
      to: text(fields.to),
      createdAt: instant(fields.createdAt),
      seq: count(fields.seq),
      onTimeout: text(fields.onTimeout),
      inOutbox: fields.inOutbox === true ? true : undefined,
      quickReplies: readQuickReplies(fields.quickReplies),
      runId,
      state: text(fields.state),
    }),
  };
}

export function readComing(value: unknown): ComingItem[] {
  return each(value, readComingItem);
}

function readCounts(fields: Fields): Counts {
  return { delayed: count(fields.delayed) ?? 0, pending: count(fields.pending) ?? 0, mine: count(fields.mine) ?? 0 };
}

function readMessageFrame(fields: Fields, session: string): ServerFrame | undefined {
  const line = readLine(fields);
  return line ? { op: "message", session, line } : undefined;
}

function readDraft(fields: Fields, session: string): ServerFrame | undefined {
  const draftId = text(fields.draftId);
  if (!draftId) return undefined;
  const done = fields.done === true;
  return { op: "draft", session, draftId, from: text(fields.from) ?? "", text: text(fields.text) ?? "", done };
}

function readRunFrame(fields: Fields, session: string): ServerFrame | undefined {
  const run = readRun(fields.run, session);
  return run ? { op: "run", session: run.session, run } : undefined;
}

function readProgressFrame(fields: Fields, session: string): ServerFrame | undefined {
  const runId = text(fields.runId);
  const progress = readProgress(fields.progress);
  return runId && progress ? { op: "runProgress", session, runId, step: count(fields.stepIndex) ?? 0, progress } : undefined;
}

function readSent(fields: Fields, session: string): ServerFrame | undefined {
  const key = text(fields.key);
  if (!key) return undefined;
  const messageId = text(fields.messageId) ?? "";
  return { op: "sent", key, session, messageId, seq: count(fields.seq) ?? 0, warnings: texts(fields.warnings) };
}

function readError(fields: Fields): ServerFrame {
  const error = text(fields.error) ?? "unknown";
  return {
    op: "error",
    error,
    message: text(fields.message) ?? error,
    ...given<{ key: string; session: string }>({ key: text(fields.key), session: text(fields.session) }),
  };
}

function readActivity(fields: Fields, session: string): ServerFrame {
  return {
    op: "activity",
    session,
    seq: count(fields.seq) ?? 0,
    from: text(fields.from) ?? "",
    source: text(fields.source) ?? "",
    text: text(fields.text) ?? "",
  };
}

function readWelcome(fields: Fields): ServerFrame {
  return {
    op: "welcome",
    version: text(fields.version) ?? "",
    now: instant(fields.now) ?? new Date().toISOString(),
    person: text(fields.person) ?? "user",
    timezone: text(fields.timezone) ?? "UTC",
  };
}

/** A frame of the server; undefined for what is not one, or of a kind that this page does not know yet. */
export function readFrame(value: unknown): ServerFrame | undefined {
  const fields = fieldsOf(value);
  if (!fields) return undefined;
  const session = text(fields.session) ?? "";
  switch (fields.op) {
    case "welcome": return readWelcome(fields);
    case "message": return readMessageFrame(fields, session);
    case "caughtUp": return { op: "caughtUp", session, seq: count(fields.seq) ?? 0 };
    case "activity": return readActivity(fields, session);
    case "sent": return readSent(fields, session);
    case "error": return readError(fields);
    case "draft": return readDraft(fields, session);
    case "run": return readRunFrame(fields, session);
    case "runProgress": return readProgressFrame(fields, session);
    case "coming": return { op: "coming", session };
    case "counts": return { op: "counts", counts: readCounts(fields) };
    case "pong": return { op: "pong", now: instant(fields.now) ?? new Date().toISOString() };
    case "stopping": return { op: "stopping" };
    default: return undefined;
  }
}
