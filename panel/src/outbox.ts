// What was typed and is not on the server yet. An entry has a key of its own, so that sending it again cannot say it twice.
// It stays, also over a reload, until the server has it or has refused it for good.
//
// Each tab keeps its entries under a name of its own, so that two tabs never write the same place. What a tab that is gone
// has left is adopted by another one (tabs.ts).

export type EntryState = "queued" | "sending" | "failed" | "sent";

export interface Entry {
  key: string;
  person: string;
  session: string;
  text: string;
  inReplyTo?: string;
  quickReplyIndex?: number;
  at: number;
  state: EntryState;
  /** The live number when it was sent: a line behind it with this text may be this entry. */
  after: number;
  error?: string;
  message?: string;
  seq?: number;
}

export interface Said {
  seq: number;
  from: string;
  text: string;
  inReplyTo?: string;
}

export const ENTRIES_MAX = 200;
export const TEXT_BYTES_MAX = 100_000;

/** Refusals that end by themselves: the entry waits and goes out with the next connection. */
const WAITING = new Set(["stopping", "cancelled"]);

export function bytesOf(text: string): number {
  return new TextEncoder().encode(text).length;
}

/** Nothing that waits is thrown away for something newer: the newer one is not taken. */
export function isFull(entries: readonly Entry[]): boolean {
  return entries.length >= ENTRIES_MAX;
}

export function remove(entries: readonly Entry[], key: string): Entry[] {
  return entries.filter((entry) => entry.key !== key);
}

function change(entries: readonly Entry[], key: string, fields: Partial<Entry>): Entry[] {
  return entries.map((entry) => (entry.key === key ? { ...entry, ...fields } : entry));
}

function withoutError(entry: Entry): Entry {
  const { error: _error, message: _message, ...rest } = entry;
  return rest;
}

export function markSending(entries: readonly Entry[], key: string, after: number): Entry[] {
  return change(entries, key, { state: "sending", after });
}

export function markSent(entries: readonly Entry[], key: string, seq: number): Entry[] {
  return change(entries, key, { state: "sent", seq });
}

export function markRefused(entries: readonly Entry[], key: string, error: string, message: string): Entry[] {
  if (WAITING.has(error)) return change(entries, key, { state: "queued" });
  return change(entries, key, { state: "failed", error, message });
}

/** The connection is gone: whether these arrived is unknown, so they go out again under the same keys. */
export function requeue(entries: readonly Entry[]): Entry[] {
  if (!entries.some((entry) => entry.state === "sending")) return entries as Entry[];
  return entries.map((entry) => (entry.state === "sending" ? { ...entry, state: "queued" } : entry));
}

export function retry(entries: readonly Entry[], key: string): Entry[] {
  return entries.map((entry) => (entry.key === key ? { ...withoutError(entry), state: "queued" } : entry));
}

/** What goes out next; in the order of typing, of this person only. */
export function waiting(entries: readonly Entry[], person: string): Entry[] {
  return entries.filter((entry) => entry.state === "queued" && entry.person === person);
}

function isSaidAs(entry: Entry, line: Said, person: string): boolean {
  const same = line.from === person && line.text === entry.text && line.inReplyTo === entry.inReplyTo;
  return same && line.seq > entry.after;
}

/**
 * The entries of a conversation that are shown below its lines: without those whose line is there. A line can come before
 * the server's "sent", and does not carry the key: then the oldest entry with the same text is taken for it.
 */
export function shown(entries: readonly Entry[], session: string, person: string, lines: readonly Said[]): Entry[] {
  const mine = entries.filter((entry) => entry.session === session && entry.person === person);
  if (mine.length === 0) return mine;
  const oldest = Math.min(...mine.map((entry) => entry.after));
  const recent = lines.filter((line) => line.seq > oldest && line.from === person);
  const taken = new Set<number>();
  return mine.filter((entry) => {
    if (entry.seq !== undefined) return !recent.some((line) => line.seq === entry.seq);
    if (entry.state !== "sending") return true;
    const line = recent.find((each) => !taken.has(each.seq) && isSaidAs(entry, each, person));
    if (line) taken.add(line.seq);
    return line === undefined;
  });
}

/** Entries that are said for sure and whose line the page has: nothing is left to do for them. */
export function settle(entries: readonly Entry[], session: string, live: number): Entry[] {
  const over = (entry: Entry): boolean => entry.session === session && entry.seq !== undefined && entry.seq <= live;
  return entries.some(over) ? entries.filter((entry) => !over(entry)) : (entries as Entry[]);
}

/** A question that is over needs no retry of a press that failed. */
export function dropFailedPresses(entries: readonly Entry[], closed: readonly string[] | undefined): readonly Entry[] {
  if (!closed || entries.length === 0) return entries;
  return entries.filter((entry) => entry.state !== "failed" || entry.quickReplyIndex === undefined || !closed.includes(entry.inReplyTo ?? ""));
}

/** The press of a quick reply that is on its way, or failed, for this question. */
export function pressOf(entries: readonly Entry[], messageId: string): Entry | undefined {
  return entries.findLast((entry) => entry.inReplyTo === messageId && entry.quickReplyIndex !== undefined);
}

function isEntry(value: unknown): value is Entry {
  if (typeof value !== "object" || value === null) return false;
  const entry = value as Record<string, unknown>;
  const texts = [entry.key, entry.person, entry.session, entry.text].every((each) => typeof each === "string");
  return texts && typeof entry.at === "number" && typeof entry.state === "string";
}

/** Entries as they were stored; what was being sent is unknown, so it waits again. */
export function restore(stored: string | null): Entry[] {
  if (stored === null) return [];
  try {
    const value: unknown = JSON.parse(stored);
    const entries = Array.isArray(value) ? value.filter(isEntry) : [];
    return requeue(entries).filter((entry) => entry.state !== "sent").map((entry) => ({ ...entry, after: entry.after ?? 0 }));
  } catch {
    return [];
  }
}

export function stored(entries: readonly Entry[]): string {
  return JSON.stringify(entries.filter((entry) => entry.state !== "sent"));
}
