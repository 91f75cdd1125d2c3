// Runs and what tools say, as the server tells of them: checked, and never more broken than the one field that is.
import { count, each, fieldsOf, given, instant, text } from "./fields.ts";
import type { Progress, RunStep, StepDetails, ToolFile, ToolLine, ToolRun } from "./types.ts";

const SHOWN_MAX = 20_000; // of a value, as JSON
const PROGRESS_MAX = 300;
const ERROR_MAX = 2000;
const EPOCH = new Date(0).toISOString();

function cut(whole: string, most: number): string {
  return whole.length > most ? `${whole.slice(0, most)}…` : whole;
}

function readError(value: unknown): string | undefined {
  const fields = fieldsOf(value);
  const message = text(value) ?? text(fields?.message) ?? text(fields?.code);
  return message === undefined || message === "" ? undefined : cut(message, ERROR_MAX);
}

function readStep(value: unknown, place: number): RunStep | undefined {
  const fields = fieldsOf(value);
  if (!fields) return undefined;
  return {
    index: count(fields.stepIndex) ?? place,
    aiName: text(fields.aiName) ?? "?",
    state: text(fields.state) ?? "unknown",
    dependsOn: each(fields.dependsOn, count),
    ...given<RunStep>({
      schedule: text(fields.schedule) ?? text(fieldsOf(fields.schedule)?.when),
      feedbackAt: instant(fields.feedbackAt),
      startedAt: instant(fields.startedAt),
      endedAt: instant(fields.endedAt),
      reportedAt: instant(fields.reportedAt),
      past: fields.past === true ? true : undefined,
      error: readError(fields.error),
      progress: readProgress(fields.progress),
    }),
  };
}

/** A run; its session is the one in which it was heard of, if it names none. */
export function readRun(value: unknown, session = ""): ToolRun | undefined {
  const fields = fieldsOf(value);
  const id = text(fields?.runId);
  const place = text(fields?.sessionId) || session;
  if (!fields || !id || !place) return undefined;
  return {
    id,
    session: place,
    state: text(fields.state) ?? "unknown",
    createdAt: instant(fields.createdAt) ?? EPOCH,
    lastEvent: count(fields.lastEvent) ?? 0,
    afterSeq: count(fields.afterSeq) ?? 0,
    steps: each(fields.steps, readStep),
    ...given<ToolRun>({ title: text(fields.title) || undefined, endedAt: instant(fields.endedAt) }),
  };
}

export function readRuns(value: unknown, session: string): ToolRun[] {
  return each(value, (one) => readRun(one, session));
}

function shown(value: unknown): string | undefined {
  if (value === undefined) return undefined;
  return cut(JSON.stringify(value, null, 2), SHOWN_MAX);
}

/** The arguments as the tool got them, or as they were planned. */
export function readStepDetails(value: unknown): StepDetails[] {
  return each(fieldsOf(value)?.steps, (one, place) => {
    const fields = fieldsOf(one);
    if (!fields) return undefined;
    const found = { args: shown(fields.args ?? fields.draftArgs), data: shown(fields.data) };
    return { index: count(fields.stepIndex) ?? place, ...given<StepDetails>(found) };
  });
}

function percentOf(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) ? Math.min(100, Math.max(0, value)) : undefined;
}

/** Usually {text, percent}; a tool may say anything. */
export function readProgress(value: unknown): Progress | undefined {
  if (value === undefined || value === null) return undefined;
  const fields = fieldsOf(value);
  const percent = percentOf(fields ? fields.percent : value);
  const said = text(fields ? (fields.text ?? fields.message) : value);
  const words = said ?? (percent === undefined ? JSON.stringify(value) : "");
  return { text: cut(words, PROGRESS_MAX), ...(percent === undefined ? {} : { percent }) };
}

function readFile(value: unknown): ToolFile | undefined {
  const fields = fieldsOf(value);
  const name = text(fields?.name);
  if (!fields || !name) return undefined;
  return { name, mimeType: text(fields.mimeType) ?? "", ...given<ToolFile>({ bytes: count(fields.bytes) }) };
}

/** What the payload of a line says of the run that it came from. */
export function readToolLine(value: unknown): ToolLine | undefined {
  const fields = fieldsOf(value);
  const runId = text(fields?.runId);
  const aiName = text(fields?.aiName);
  if (!fields || !runId || !aiName) return undefined;
  return { runId, aiName, stepIndex: count(fields.stepIndex) ?? 0, files: each(fieldsOf(fields.data)?.files, readFile) };
}
