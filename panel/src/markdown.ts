// Markdown as a small tree of our own: raw HTML is text, links go to http and https only, and an image is a link. Nothing here can
// become markup, since the tree has none.
//
// Lines become blocks from the first to the last. A quote or an item of a list takes its lines, and they are read again without
// its marks, to a depth that is bounded. What stands in the blocks is read when all definitions of links are known.
import { DEPTH_MAX, labelOf, plain, readInline, unescaped, type Inline } from "./markdown_inline.ts";
import { TooMuchWork, Work } from "./markdown_work.ts";

export { safeAddress, type Inline } from "./markdown_inline.ts";

export type Align = "left" | "right" | "center" | undefined;

export type Block =
  | { kind: "paragraph"; inner: Inline[] }
  | { kind: "heading"; depth: number; inner: Inline[] }
  | { kind: "code"; language: string; text: string }
  | { kind: "quote"; blocks: Block[] }
  | { kind: "list"; ordered: boolean; start: number; items: ListItem[] }
  | { kind: "table"; align: Align[]; header: Inline[][]; rows: Inline[][][] }
  | { kind: "rule" };

export interface ListItem {
  checked?: boolean;
  blocks: Block[];
}

/** Longer texts are shown as they are: nobody formats that much by hand. */
export const MARKDOWN_MAX = 20_000;

/**
 * How much work a text may make. The rules of the reader stay below, whatever the text (markdown.test.ts looks for the worst); this
 * is what holds if one of them does not.
 */
export const STEPS_PER_LETTER = 64;
const STEPS_LEAST = 1000;

/** What a line would begin, if no block before takes it. */
type Start =
  | { kind: "blank" | "indented" | "rule" | "quote" | "text"; indent: number }
  | { kind: "heading"; indent: number; depth: number }
  | { kind: "fence"; indent: number; mark: string; info: string }
  | { kind: "item"; indent: number; mark: string };

interface Reading {
  work: Work;
  definitions: Map<string, string>;
  later: { text: string; inner: Inline[] }[];
}

function indentOf(line: string): number {
  let indent = 0;
  while (line[indent] === " ") indent++;
  return indent;
}

/** Tabs at the beginning as the spaces that they look like. */
function withoutTabs(line: string): string {
  const [space = ""] = /^[ \t]*/.exec(line) ?? [];
  if (!space.includes("\t")) return line;
  let columns = 0;
  for (const each of space) columns += each === "\t" ? 4 - (columns % 4) : 1;
  return " ".repeat(columns) + line.slice(space.length);
}

function startOf(line: string, work: Work): Start {
  work.spend(line.length + 1);
  const indent = indentOf(line);
  const first = line[indent] ?? " ";
  if (first.trim() === "" && line.trim() === "") return { kind: "blank", indent };
  if (indent >= 4) return { kind: "indented", indent };
  if (first === ">") return { kind: "quote", indent };
  if (!/[#`~\-*_+0-9]/.test(first)) return { kind: "text", indent };
  return markedStart(indent === 0 ? line : line.slice(indent), indent);
}

function markedStart(rest: string, indent: number): Start {
  const heading = /^(#{1,6})(?:[ \t]|$)/.exec(rest);
  if (heading) return { kind: "heading", indent, depth: heading[1]?.length ?? 1 };
  const fence = /^(?:(`{3,})([^`]*)|(~{3,})(.*))$/.exec(rest);
  if (fence) return { kind: "fence", indent, mark: fence[1] ?? fence[3] ?? "", info: unescaped((fence[2] ?? fence[4] ?? "").trim()) };
  if (/^([-*_])[ \t]*(?:\1[ \t]*){2,}$/.test(rest)) return { kind: "rule", indent };
  const item = /^(?:[-+*]|\d{1,9}[.)])(?=[ \t]|$)/.exec(rest);
  return item ? { kind: "item", indent, mark: item[0] } : { kind: "text", indent };
}

/** A paragraph is not ended by what begins with a number, unless that is 1, nor by an empty item. */
function interrupts(start: Start, line: string): boolean {
  if (start.kind !== "item") return start.kind !== "text" && start.kind !== "indented";
  return (/^1?\D$/.test(start.mark)) && line.trim() !== start.mark;
}

/** Whether the next line could go on with what this one ends with, whatever marks it has in front. */
function endsInText(line: string, work: Work): boolean {
  const [marks = ""] = /^(?: {0,3}(?:>|(?:[-+*]|\d{1,9}[.)])(?=[ \t]))[ \t]?)*/.exec(line) ?? [];
  work.spend(line.length);
  return startOf(line.slice(marks.length), work).kind === "text";
}

/** The cells of a row, of which the bars at both ends are no part. */
function cellsOf(line: string, work: Work): string[] {
  work.spend(line.length);
  const cells = [""];
  for (const [piece] of line.trim().matchAll(/\\\||\||[^\\|]+|\\/g)) {
    if (piece === "|") cells.push("");
    else cells[cells.length - 1] += piece === "\\|" ? "|" : piece;
  }
  if (cells.length > 1 && cells[0] === "") cells.shift();
  if (cells.length > 1 && cells.at(-1)?.trim() === "") cells.pop();
  return cells.map((cell) => cell.trim());
}

function alignOf(cell: string): Align {
  if (cell.startsWith(":")) return cell.length > 1 && cell.endsWith(":") ? "center" : "left";
  return cell.endsWith(":") ? "right" : undefined;
}

/** Whether lines are inside of code between fences, as far as the lines of one container tell. */
class Fences {
  private open: string | undefined;

  constructor(private readonly work: Work) {}

  /** Whether the line belongs to such code, its marks included. */
  take(line: string): boolean {
    if (this.open !== undefined) {
      if (this.closes(line)) this.open = undefined;
      return true;
    }
    const start = startOf(line, this.work);
    if (start.kind === "fence") this.open = start.mark;
    return start.kind === "fence";
  }

  closes(line: string): boolean {
    this.work.spend(line.length + 1);
    const mark = this.open ?? "";
    const text = line.trim();
    return indentOf(line) < 4 && text.length >= mark.length && text.startsWith(mark) && text === (mark[0] ?? "").repeat(text.length);
  }

  begin(mark: string): void {
    this.open = mark;
  }

  get inside(): boolean {
    return this.open !== undefined;
  }
}

/** Reads the lines of a container, or of the whole text. */
class BlockReader {
  readonly blocks: Block[] = [];
  at = 0;

  constructor(private readonly lines: readonly string[], private readonly depth: number, private readonly reading: Reading) {}

  private line(index: number): string {
    return this.lines[index] ?? "";
  }

  private start(index: number): Start {
    return startOf(this.line(index), this.reading.work);
  }

  get done(): boolean {
    return this.at >= this.lines.length;
  }

  readAll(): Block[] {
    while (!this.done) this.readOne();
    return this.blocks;
  }

  readOne(): void {
    const start = this.start(this.at);
    switch (start.kind) {
      case "blank": this.at++; break;
      case "rule": this.at++; this.blocks.push({ kind: "rule" }); break;
      case "heading": this.heading(start.depth); break;
      case "fence": this.fenced(start.mark, start.info, start.indent); break;
      case "indented": this.indented(); break;
      case "quote": this.quote(); break;
      case "item": this.list(start); break;
      case "text": this.table() || this.definition() || this.paragraph();
    }
  }

  /** What is in a container: blocks, or where that would be too deep, what was written. */
  private inside(lines: readonly string[]): Block[] {
    if (this.depth < DEPTH_MAX) return new BlockReader(lines, this.depth + 1, this.reading).readAll();
    const text = lines.join("\n").trim();
    return text === "" ? [] : [{ kind: "paragraph", inner: plain(text) }];
  }

  private later(text: string): Inline[] {
    const inner: Inline[] = [];
    this.reading.later.push({ text, inner });
    return inner;
  }

  private heading(depth: number): void {
    let text = this.line(this.at++).trim().slice(depth).trim();
    let end = text.length;
    while (text[end - 1] === "#") end--;
    if (end === 0 || /[ \t]/.test(text[end - 1] ?? "")) text = text.slice(0, end).trimEnd();
    this.blocks.push({ kind: "heading", depth, inner: this.later(text) });
  }

  private fenced(mark: string, language: string, indent: number): void {
    const fences = new Fences(this.reading.work);
    fences.begin(mark);
    const text: string[] = [];
    for (this.at++; !this.done; this.at++) {
      const line = this.line(this.at);
      if (fences.closes(line)) {
        this.at++;
        break;
      }
      text.push(line.slice(Math.min(indent, indentOf(line))));
    }
    this.blocks.push({ kind: "code", language, text: text.join("\n") });
  }

  private indented(): void {
    const text: string[] = [];
    for (; !this.done; this.at++) {
      const { kind } = this.start(this.at);
      if (kind !== "indented" && kind !== "blank") break;
      text.push(this.line(this.at).slice(4));
    }
    this.blocks.push({ kind: "code", language: "", text: text.join("\n").trimEnd() });
  }

  /** Whether a line without its container's marks goes on with the paragraph in it. */
  private goesOn(start: Start, index: number, taken: readonly string[], fences: Fences): boolean {
    return !fences.inside && !interrupts(start, this.line(index)) && endsInText(taken.at(-1) ?? "", this.reading.work);
  }

  private quote(): void {
    const taken: string[] = [];
    const fences = new Fences(this.reading.work);
    for (; !this.done; this.at++) {
      const start = this.start(this.at);
      const line = this.line(this.at).slice(start.indent);
      if (start.kind === "quote") {
        taken.push(withoutTabs(line.startsWith("> ") ? line.slice(2) : line.slice(1)));
        fences.take(taken.at(-1) ?? "");
      } else if (this.goesOn(start, this.at, taken, fences)) {
        taken.push(this.line(this.at));
      } else {
        break;
      }
    }
    this.blocks.push({ kind: "quote", blocks: this.inside(taken) });
  }

  private list(first: Start & { kind: "item" }): void {
    const items: ListItem[] = [];
    const same = first.mark.slice(-1);
    for (let start: Start = first; start.kind === "item" && start.mark.endsWith(same); start = this.start(this.at)) {
      items.push(this.item(start));
      while (!this.done && this.start(this.at).kind === "blank") this.at++;
      if (this.done) break;
    }
    const ordered = first.mark.length > 1;
    this.blocks.push({ kind: "list", ordered, start: ordered ? Number(first.mark.slice(0, -1)) : 1, items });
  }

  private item(start: Start & { kind: "item" }): ListItem {
    const marked = start.indent + start.mark.length;
    const rest = withoutTabs(" ".repeat(marked) + this.line(this.at).slice(marked)).slice(marked);
    const padding = indentOf(rest);
    const width = marked + (padding > 4 || rest.trim() === "" ? 1 : padding);
    const begin = rest.slice(width - marked);
    const task = /^\[([ xX])\][ \t]+(?=\S)/.exec(begin);
    const taken = [task ? begin.slice(task[0].length) : begin];
    this.reading.work.spend(rest.length + marked);
    this.at++;
    this.itemLines(width, taken);
    const blocks = this.inside(taken);
    return task ? { checked: task[1] !== " ", blocks } : { blocks };
  }

  /** The lines of an item after its first. Blank ones belong to it if something of it follows. */
  private itemLines(width: number, taken: string[]): void {
    const fences = new Fences(this.reading.work);
    fences.take(taken[0] ?? "");
    for (let index = this.at; index < this.lines.length; index++) {
      const start = this.start(index);
      const blanks = index - this.at;
      if (start.kind === "blank") {
        if (taken.length === 1 && blanks === 0 && taken[0]?.trim() === "") return;
        continue;
      }
      const line = this.line(index);
      const inside = start.indent >= width;
      if (!inside && (blanks > 0 || start.kind === "item" || !this.goesOn(start, index, taken, fences))) return;
      for (let each = this.at; each < index; each++) taken.push("");
      taken.push(inside ? line.slice(width) : line);
      fences.take(taken.at(-1) ?? "");
      this.at = index + 1;
    }
  }

  /** How its columns are aligned, if a table begins at this line. */
  private tableAt(index: number): Align[] | undefined {
    const next = this.line(index + 1);
    this.reading.work.spend(next.length + 1);
    if (!/^[ \t|:-]*$/.test(next) || !next.includes("-") || indentOf(next) > 3) return undefined;
    const line = this.line(index);
    if (!line.includes("|")) return undefined;
    const marks = cellsOf(next, this.reading.work);
    const fits = marks.every((cell) => /^:?-+:?$/.test(cell)) && marks.length === cellsOf(line, this.reading.work).length;
    return fits ? marks.map(alignOf) : undefined;
  }

  private row(index: number, most: number): Inline[][] {
    const cells = cellsOf(this.line(index), this.reading.work);
    const rest = cells.splice(Math.max(1, most));
    if (rest.length > 0) cells.push(`${cells.pop() ?? ""} | ${rest.join(" | ")}`);
    return cells.map((cell) => this.later(cell));
  }

  private table(): boolean {
    const align = this.tableAt(this.at);
    if (!align) return false;
    const header = this.row(this.at, align.length);
    const rows: Inline[][][] = [];
    for (this.at += 2; !this.done; this.at++) {
      const { kind } = this.start(this.at);
      if (kind !== "text" && kind !== "indented") break;
      rows.push(this.row(this.at, align.length));
    }
    this.blocks.push({ kind: "table", align, header, rows });
    return true;
  }

  /** `[label]: address "title"` is shown as it is. */
  private definition(): boolean {
    const line = this.line(this.at);
    this.reading.work.spend(line.length);
    const found = /^ {0,3}\[((?:[^\\[\]]|\\.){1,999})\]:[ \t]*(\S+)(?:[ \t]+(.*))?$/.exec(line);
    const [, label = "", address = "", title = ""] = found ?? [];
    if (!found || label.trim() === "" || !/^("[^"]*"|'[^']*'|\([^()]*\))?$/.test(title.trim())) return false;
    const name = labelOf(label);
    if (!this.reading.definitions.has(name)) this.reading.definitions.set(name, unescaped(address.replace(/^<(.*)>$/, "$1")));
    this.blocks.push({ kind: "paragraph", inner: plain(line) });
    this.at++;
    return true;
  }

  private paragraph(): void {
    const first = this.at++;
    for (; !this.done; this.at++) {
      const line = this.line(this.at);
      const start = this.start(this.at);
      const under = start.indent < 4 ? /^(?:(=+)|-+)$/.exec(line.trim()) : null;
      if (under) {
        const text = this.lines.slice(first, this.at++).join("\n").trim();
        this.blocks.push({ kind: "heading", depth: under[1] ? 1 : 2, inner: this.later(text) });
        return;
      }
      if (interrupts(start, line) || (start.kind === "text" && this.tableAt(this.at))) break;
    }
    this.blocks.push({ kind: "paragraph", inner: this.later(this.lines.slice(first, this.at).join("\n").trim()) });
  }
}

/** What stands in a block, or what was written, if it is too much work. */
function fill({ text, inner }: { text: string; inner: Inline[] }, reading: Reading): void {
  let found: Inline[];
  try {
    found = readInline(text, reading.definitions, reading.work);
  } catch (error) {
    if (!(error instanceof TooMuchWork)) throw error;
    found = plain(text);
  }
  for (const each of found) inner.push(each);
}

/** What is too much work is shown as it is: the rest of the blocks, and what stands in those that were found. */
export function readMarkdown(text: string, work = new Work(text.length * STEPS_PER_LETTER + STEPS_LEAST)): Block[] {
  const asItIs = (lines: string): Block => ({ kind: "paragraph", inner: plain(lines) });
  if (text.length > MARKDOWN_MAX) return [asItIs(text)];
  const reading: Reading = { work, definitions: new Map(), later: [] };
  const written = text.split(/\r\n?|\n/);
  const reader = new BlockReader(written.map(withoutTabs), 0, reading);
  let from = 0;
  try {
    for (; !reader.done; from = reader.at) reader.readOne();
  } catch (error) {
    if (!(error instanceof TooMuchWork)) throw error;
    reader.blocks.push(asItIs(written.slice(from).join("\n")));
  }
  for (const each of reading.later) fill(each, reading);
  return reader.blocks;
}
