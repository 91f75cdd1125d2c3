// What the server says, after its shape was checked (shapes.ts), and what the page keeps of it.

/** Milliseconds since 1970, by the server's clock unless a name says otherwise. */
export type Millis = number;

export type QuestionState = "open" | "answered" | "closed" | "defaulted" | "expired";

export interface Answer {
  index?: number;
  text?: string;
  by?: string;
  at?: string;
}

/** One line of a conversation. Its number is dense within the session and never changes. */
export interface Line {
  seq: number;
  messageId: string;
  from: string;
  to?: string;
  source: string;
  text: string;
  draftId?: string;
  /** What a tool said: of which run it is, and the files that it left. */
  tool?: ToolLine;
  /** What to show if there is no text: the payload, as JSON, cut. */
  payloadText?: string;
  quickReplies?: string[];
  questionState?: QuestionState;
  answerBy?: string;
  answer?: Answer;
  inReplyTo?: string;
  quickReplyIndex?: number;
  closes?: string[];
  createdAt: string;
  saidAt: string;
  dueAt?: string;
}

export interface Session {
  id: string;
  kind: "private" | "group";
  title?: string;
  timezone: string;
  users: string[];
  agents: string[];
  lastSeq: number;
  lastAt: string;
  /** The last line, as far as it is known. */
  lastFrom?: string;
  lastText?: string;
}

export interface Agent {
  id: string;
  kind: string;
}

/** A file that a step of a run has left. */
export interface ToolFile {
  name: string;
  mimeType: string;
  bytes?: number;
}

export interface ToolLine {
  runId: string;
  stepIndex: number;
  aiName: string;
  files: readonly ToolFile[];
}

/** One tool of a run. Its state is a word of the server's; this page may not know all of them. */
export interface RunStep {
  index: number;
  aiName: string;
  state: string;
  dependsOn: readonly number[];
  schedule?: string;
  feedbackAt?: string;
  startedAt?: string;
  endedAt?: string;
  reportedAt?: string;
  past?: boolean;
  error?: string;
  /** What its tool last said, when this was read. */
  progress?: Progress;
}

/** A plan that is being carried out in a chat, or was. */
export interface ToolRun {
  id: string;
  session: string;
  state: string;
  title?: string;
  createdAt: string;
  endedAt?: string;
  /** Grows with what happens: what has the higher one is newer. */
  lastEvent: number;
  /** It began after this line. */
  afterSeq: number;
  steps: readonly RunStep[];
}

/** What a step got and gave, as JSON to be read. */
export interface StepDetails {
  index: number;
  args?: string;
  data?: string;
}

/** How far a tool says it is. */
export interface Progress {
  text: string;
  percent?: number;
}

export type ComingKind = "message" | "scheduled" | "question" | "run";

export interface ComingItem {
  kind: ComingKind;
  id: string;
  from: string;
  to?: string;
  at: string;
  createdAt?: string;
  text: string;
  seq?: number;
  onTimeout?: string;
  inOutbox?: boolean;
  quickReplies?: string[];
  /** Of a run's step. */
  runId?: string;
  state?: string;
}

export interface Draft {
  session: string;
  draftId: string;
  from: string;
  text: string;
  /** By the browser's clock: drafts whose writer is gone are dropped. */
  heardAt: Millis;
}

export interface Counts {
  delayed: number;
  pending: number;
  mine: number;
}

export interface Failure {
  error: string;
  message: string;
}

export type Phase = "connecting" | "online" | "offline" | "stopping" | "unauthorized";

/** What the socket hands on; every frame of the server, checked. */
export type ServerFrame =
  | { op: "welcome"; version: string; now: string; person: string; timezone: string }
  | { op: "message"; session: string; line: Line }
  | { op: "caughtUp"; session: string; seq: number }
  | { op: "activity"; session: string; seq: number; from: string; source: string; text: string }
  | { op: "sent"; key: string; session: string; messageId: string; seq: number; warnings: string[] }
  | { op: "error"; key?: string; session?: string; error: string; message: string }
  | { op: "draft"; session: string; draftId: string; from: string; text: string; done: boolean }
  | { op: "coming"; session: string }
  | { op: "run"; session: string; run: ToolRun }
  | { op: "runProgress"; session: string; runId: string; step: number; progress: Progress }
  | { op: "counts"; counts: Counts }
  | { op: "pong"; now: string }
  | { op: "stopping" };

export type ClientFrame =
  | { op: "hello"; token?: string; person: string; sessions: { id: string; after: number }[] }
  | { op: "subscribe"; session: string; after: number }
  | { op: "unsubscribe"; session: string }
  | { op: "send"; session: string; text: string; key: string; inReplyTo?: string; quickReplyIndex?: number }
  | { op: "stop"; session: string; agent: string }
  | { op: "ping" };
