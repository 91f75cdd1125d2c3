// The only place that knows HTTP. Every call ends with a value or a failure; none throws.
import { fieldsOf, text as textOf } from "./fields.ts";
import { readRun, readRuns, readStepDetails } from "./run_shapes.ts";
import { readAgents, readComing, readLines, readPeople, readSession, readSessions } from "./shapes.ts";
import type { Agent, ComingItem, Failure, Line, Session, StepDetails, ToolRun } from "./types.ts";

const PATIENCE = 20_000;
const FILE_PATIENCE = 120_000;

export type Outcome<T> = { ok: true; value: T } | { ok: false; failure: Failure; status: number };

export interface Page {
  lines: Line[];
  next?: number;
}

export interface Reading {
  at: string;
  sentence: { en: string; zh: string };
  alternatives: string[];
  past: boolean;
  comesAgain: boolean;
}

export interface RunsPage {
  runs: ToolRun[];
  next?: string;
}

type Query = Record<string, string | number | undefined>;

function path(parts: TemplateStringsArray, ...values: string[]): string {
  return String.raw(parts, ...values.map(encodeURIComponent));
}

function withQuery(address: string, query: Query): string {
  const given = Object.entries(query).filter((pair): pair is [string, string | number] => pair[1] !== undefined);
  const search = new URLSearchParams(given.map(([name, value]) => [name, String(value)]));
  return search.size === 0 ? address : `${address}?${search}`;
}

function failureOf(body: unknown, status: number): Failure {
  const fields = fieldsOf(body);
  const error = typeof fields?.error === "string" ? fields.error : "unavailable";
  return { error, message: typeof fields?.message === "string" ? fields.message : `HTTP ${status}` };
}

function readPage(body: unknown): Page {
  const fields = fieldsOf(body);
  const lines = readLines(fields?.messages);
  return typeof fields?.next === "number" ? { lines, next: fields.next } : { lines };
}

function readReading(body: unknown): Reading | undefined {
  const fields = fieldsOf(body);
  const sentence = fieldsOf(fields?.sentence);
  if (typeof fields?.at !== "string" || Number.isNaN(Date.parse(fields.at))) return undefined;
  const words = (value: unknown): string => (typeof value === "string" ? value : String(fields.at));
  const alternatives = Array.isArray(fields.alternatives) ? fields.alternatives : [];
  return {
    at: fields.at,
    sentence: { en: words(sentence?.en), zh: words(sentence?.zh) },
    alternatives: alternatives.filter((each): each is string => typeof each === "string" && !Number.isNaN(Date.parse(each))),
    past: fields.past === true,
    comesAgain: fields.kind === "recurrence" || typeof fields.rule === "string",
  };
}

function orBroken<T>(outcome: Outcome<unknown>, read: (body: unknown) => T | undefined): Outcome<T> {
  if (!outcome.ok) return outcome;
  const value = read(outcome.value);
  if (value !== undefined) return { ok: true, value };
  return { ok: false, status: 200, failure: { error: "unavailable", message: "the answer could not be read" } };
}

function readRunsPage(body: unknown, session: string): RunsPage | undefined {
  const fields = fieldsOf(body);
  const next = textOf(fields?.next);
  return fields ? { runs: readRuns(fields.runs, session), ...(next ? { next } : {}) } : undefined;
}

/** Where a file that a step has left is to be had. */
export function fileAddress(runId: string, step: number, name: string): string {
  return path`/v1/files/${`${runId}.${step}.${name}`}`;
}

export class Api {
  token: string | undefined;

  constructor(private readonly onUnauthorized: () => void) {}

  async call(method: string, address: string, body?: object): Promise<Outcome<unknown>> {
    const headers = this.headers();
    if (body) headers["Content-Type"] = "application/json";
    const request: RequestInit = { method, headers, cache: "no-store", signal: AbortSignal.timeout(PATIENCE) };
    if (body) request.body = JSON.stringify(body);
    return this.ask(address, request, async (response) => parsed(await response.text()));
  }

  /** The bytes of a file; it never changes, so the browser may keep it. */
  file(address: string): Promise<Outcome<Blob>> {
    const request: RequestInit = { headers: this.headers(), signal: AbortSignal.timeout(FILE_PATIENCE) };
    return this.ask(address, request, (response) => response.blob());
  }

  private headers(): Record<string, string> {
    return this.token ? { Authorization: `Bearer ${this.token}` } : {};
  }

  private async ask<T>(address: string, request: RequestInit, read: (response: Response) => Promise<T>): Promise<Outcome<T>> {
    try {
      const response = await fetch(address, request);
      if (response.ok) return { ok: true, value: await read(response) };
      if (response.status === 401) this.onUnauthorized();
      return { ok: false, status: response.status, failure: failureOf(parsed(await response.text()), response.status) };
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      return { ok: false, status: 0, failure: { error: "unreachable", message } };
    }
  }

  async sessions(person: string): Promise<Outcome<Session[]>> {
    const outcome = await this.call("GET", withQuery("/v1/sessions", { member: person, limit: 500 }));
    return orBroken(outcome, (body) => readSessions(fieldsOf(body)?.sessions));
  }

  async session(id: string): Promise<Outcome<Session>> {
    return orBroken(await this.call("GET", path`/v1/sessions/${id}`), readSession);
  }

  async openSession(body: object): Promise<Outcome<Session>> {
    return orBroken(await this.call("POST", "/v1/sessions", body), readSession);
  }

  async agents(): Promise<Outcome<Agent[]>> {
    return orBroken(await this.call("GET", "/v1/agents"), (body) => readAgents(fieldsOf(body)?.agents));
  }

  async people(): Promise<Outcome<string[]>> {
    return orBroken(await this.call("GET", "/v1/people"), (body) => readPeople(fieldsOf(body)?.people));
  }

  async messages(session: string, query: Query): Promise<Outcome<Page>> {
    return orBroken(await this.call("GET", withQuery(path`/v1/sessions/${session}/messages`, query)), readPage);
  }

  async coming(session: string): Promise<Outcome<{ items: ComingItem[]; more: boolean }>> {
    const outcome = await this.call("GET", path`/v1/sessions/${session}/coming`);
    return orBroken(outcome, (body) => {
      const fields = fieldsOf(body);
      return { items: readComing(fields?.items), more: fields?.more === true };
    });
  }

  async runs(session: string, query: Query): Promise<Outcome<RunsPage>> {
    return orBroken(await this.call("GET", withQuery("/v1/runs", { session, ...query })), (body) => readRunsPage(body, session));
  }

  async run(id: string): Promise<Outcome<{ run: ToolRun; details: StepDetails[] }>> {
    return orBroken(await this.call("GET", path`/v1/runs/${id}`), (body) => {
      const run = readRun(body);
      return run && { run, details: readStepDetails(body) };
    });
  }

  async cancelRun(id: string): Promise<Outcome<ToolRun>> {
    return orBroken(await this.call("POST", path`/v1/runs/${id}:cancel`), (body) => readRun(body));
  }

  async when(text: string, timezone: string): Promise<Outcome<Reading>> {
    return orBroken(await this.call("POST", "/v1/when", { text, timezone }), readReading);
  }

  move(item: ComingItem, at: string): Promise<Outcome<unknown>> {
    if (item.kind === "scheduled") return this.call("PATCH", path`/v1/scheduled/${item.id}`, { send_at: at });
    return this.call("PATCH", path`/v1/messages/${item.id}`, { deliverAt: at });
  }

  rewrite(item: ComingItem, text: string, at: string | undefined): Promise<Outcome<unknown>> {
    const time = at === undefined ? {} : { send_at: at };
    return this.call("PATCH", path`/v1/scheduled/${item.id}`, { message_text: text, ...time });
  }

  sendNow(item: ComingItem): Promise<Outcome<unknown>> {
    const address = item.kind === "scheduled" ? path`/v1/scheduled/${item.id}` : path`/v1/messages/${item.id}`;
    return this.call("POST", `${address}:${item.kind === "scheduled" ? "send" : "deliver"}`);
  }

  cancel(item: ComingItem): Promise<Outcome<unknown>> {
    return this.call("DELETE", item.kind === "scheduled" ? path`/v1/scheduled/${item.id}` : path`/v1/messages/${item.id}`);
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
