// Times as people read them. `now` is always the server's, and comes in as a parameter.
import type { Language } from "./i18n.ts";
import type { Millis } from "./types.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Up to here a countdown says how long, behind it which day. */
const COUNTED_MAX = 12 * HOUR;

type Unit = "ms" | "s" | "min" | "h" | "d";
const UNITS: Record<Language, Record<Unit, string>> = {
  en: { ms: "ms", s: "s", min: "min", h: "h", d: "d" },
  zh: { ms: "毫秒", s: "秒", min: "分", h: "小时", d: "天" },
};

function joined(language: Language, parts: [number, Unit][]): string {
  const shown = parts.filter(([amount], index) => index === 0 || amount > 0);
  return shown.map(([amount, unit]) => `${amount} ${UNITS[language][unit]}`).join(" ");
}

/** "12 s", "3 min 5 s", "2 h 5 min", "3 d 4 h": the two largest units. */
export function duration(length: Millis, language: Language): string {
  const seconds = Math.floor(length / SECOND);
  if (length < MINUTE) return joined(language, [[seconds, "s"]]);
  if (length < HOUR) return joined(language, [[Math.floor(seconds / 60), "min"], [seconds % 60, "s"]]);
  const minutes = Math.floor(length / MINUTE);
  if (length < DAY) return joined(language, [[Math.floor(minutes / 60), "h"], [minutes % 60, "min"]]);
  const hours = Math.floor(length / HOUR);
  return joined(language, [[Math.floor(hours / 24), "d"], [hours % 24, "h"]]);
}

/** For lateness: milliseconds and tenths of seconds where they matter. */
export function precise(length: Millis, language: Language): string {
  if (length < 100) return `${Math.round(length)} ${UNITS[language].ms}`;
  if (length < 10 * SECOND) return `${(length / SECOND).toFixed(1)} ${UNITS[language].s}`;
  return duration(length, language);
}

function two(value: number): string {
  return String(value).padStart(2, "0");
}

export function clockTime(at: Millis): string {
  const date = new Date(at);
  return `${two(date.getHours())}:${two(date.getMinutes())}`;
}

export function clockTimeWithSeconds(at: Millis): string {
  return `${clockTime(at)}:${two(new Date(at).getSeconds())}`;
}

/** As a watch shows it: "0:07", "12:05", "1:02:03". */
export function stopwatch(length: Millis): string {
  const seconds = Math.max(0, Math.floor(length / SECOND));
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes}:${two(seconds % 60)}`;
  return `${Math.floor(minutes / 60)}:${two(minutes % 60)}:${two(seconds % 60)}`;
}

/** What is left, as a watch shows it and rounded up; undefined if it is over, or too far away to be counted. */
export function left(at: Millis, now: Millis): string | undefined {
  const length = at - now;
  return length <= 0 || length > COUNTED_MAX ? undefined : stopwatch(Math.ceil(length / SECOND) * SECOND);
}

/** Midnight of the local day, as a number of days: differs by one between neighbours, also across daylight saving. */
export function dayNumber(at: Millis): number {
  const date = new Date(at);
  return Math.round(Date.UTC(date.getFullYear(), date.getMonth(), date.getDate()) / DAY);
}

const LOCALES: Record<Language, string> = { en: "en-GB", zh: "zh-CN" };

function format(at: Millis, language: Language, options: Intl.DateTimeFormatOptions): string {
  return new Intl.DateTimeFormat(LOCALES[language], options).format(new Date(at));
}

/** With everything, for those who hover. */
export function exact(at: Millis, language: Language): string {
  return `${format(at, language, { dateStyle: "full" })} ${clockTimeWithSeconds(at)}`;
}

function sameYear(a: Millis, b: Millis): boolean {
  return new Date(a).getFullYear() === new Date(b).getFullYear();
}

function date(at: Millis, now: Millis, language: Language): string {
  const year: Intl.DateTimeFormatOptions = sameYear(at, now) ? {} : { year: "numeric" };
  return format(at, language, { day: "numeric", month: language === "zh" ? "long" : "short", ...year });
}

const DAY_WORDS: Record<Language, Record<number, string>> = {
  en: { "-1": "yesterday", 0: "today", 1: "tomorrow" },
  zh: { "-1": "昨天", 0: "今天", 1: "明天" },
};

function dayWord(at: Millis, now: Millis, language: Language): string {
  const days = dayNumber(at) - dayNumber(now);
  const word = DAY_WORDS[language][days];
  if (word !== undefined) return word;
  if (days > 1 && days < 7) return format(at, language, { weekday: "short" });
  return date(at, now, language);
}

/** Day and time: "tomorrow 09:00", "周五 09:00", "3 Dec 09:00". */
export function dayAndTime(at: Millis, now: Millis, language: Language): string {
  return `${dayWord(at, now, language)} ${clockTime(at)}`;
}

/** "in 12 s", "3 小时 5 分后", "tomorrow 09:00". Seconds are rounded up: it says 1 s until it is due. */
export function countdown(at: Millis, now: Millis, language: Language): string {
  const left = at - now;
  if (left <= 0) return language === "zh" ? "现在" : "now";
  if (left > COUNTED_MAX) return dayAndTime(at, now, language);
  const length = duration(Math.ceil(left / SECOND) * SECOND, language);
  return language === "zh" ? `${length}后` : `in ${length}`;
}

/** The heading above the lines of a day. */
export function dayHeading(at: Millis, now: Millis, language: Language): string {
  const days = dayNumber(at) - dayNumber(now);
  const word = days === 0 || days === -1 ? DAY_WORDS[language][days] : undefined;
  if (word !== undefined) return word.charAt(0).toUpperCase() + word.slice(1);
  const year: Intl.DateTimeFormatOptions = sameYear(at, now) ? {} : { year: "numeric" };
  return format(at, language, { weekday: "long", day: "numeric", month: "long", ...year });
}

/** In the list of chats: the time today, else the day. */
export function listTime(at: Millis, now: Millis, language: Language): string {
  return dayNumber(at) === dayNumber(now) ? clockTime(at) : dayWord(at, now, language);
}

/** Nine o'clock of the next local day. */
export function tomorrowAtNine(now: Millis): Millis {
  const date = new Date(now);
  return new Date(date.getFullYear(), date.getMonth(), date.getDate() + 1, 9).getTime();
}

export type Punctuality = { kind: "onTime" | "late" | "early"; by: Millis };

const ON_TIME_MAX = 100; // nobody sees a tenth of a second

export function punctuality(due: Millis, delivered: Millis): Punctuality {
  const by = delivered - due;
  if (by < -ON_TIME_MAX) return { kind: "early", by: -by };
  return by < ON_TIME_MAX ? { kind: "onTime", by: Math.max(0, by) } : { kind: "late", by };
}

export function size(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  return bytes < 1_000_000 ? `${Math.round(bytes / 1000)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}
