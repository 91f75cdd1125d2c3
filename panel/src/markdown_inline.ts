// What stands in a line of Markdown: emphasis, code, links. Read once from the first letter to the last, by the rules of CommonMark
// and those of GitHub for addresses and what is struck out.
//
// First the text becomes pieces; runs of `*`, `_` and `~` and brackets among them only note what they open and close. Then the tree
// is made from the pieces. Nothing is looked for twice: what cannot open anything any more is never asked again.
import { Work } from "./markdown_work.ts";

export type Inline =
  | { kind: "text" | "code"; text: string }
  | { kind: "strong" | "em" | "del"; inner: Inline[] }
  | { kind: "link"; href: string; image: boolean; inner: Inline[] }
  | { kind: "break" };

/** Where `[label]: address` says that a label leads; labels as `labelOf` makes them. */
export type Definitions = ReadonlyMap<string, string>;

export const DEPTH_MAX = 8;
const LABEL_MAX = 999;
const PARENTHESES_MAX = 8; // in each other, in an address

/** The address if it is one that may be followed, absolute and by http or https. */
export function safeAddress(href: string): string | undefined {
  if (!/^https?:\/\//i.test(href)) return undefined;
  try {
    const url = new URL(href);
    return url.protocol === "http:" || url.protocol === "https:" ? url.href : undefined;
  } catch {
    return undefined;
  }
}

export function plain(text: string): Inline[] {
  return text === "" ? [] : [{ kind: "text", text }];
}

export function labelOf(text: string): string {
  return text.trim().replace(/\s+/g, " ").toLowerCase();
}

/** Without the backslashes that only protect what follows them. */
export function unescaped(text: string): string {
  return text.replace(/\\([!-/:-@[-`{-~])/g, "$1");
}

/** Delimiters that stand together. There may be as many of them as letters, so they have lists only if they need them. */
interface Run {
  kind: "run";
  letter: string;
  length: number;
  left: number; // of which nothing has become of yet
  canOpen: boolean;
  canClose: boolean;
  place: number; // among all runs
  closes: number[] | undefined; // emphases, by how many delimiters each takes
  opens: number[] | undefined; // the innermost first
}

interface Bracket {
  image: boolean;
  piece: number;
  runs: number; // how many there were before it
  at: number; // of what follows it
  hasBrackets: boolean;
}

type Piece =
  | { kind: "node"; node: Inline }
  | Run
  | { kind: "open"; text: string; link: { href: string; image: boolean } | undefined }
  | { kind: "close"; text: string };

const ENTITIES: Record<string, string> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: "\u00a0", "#39": "'" };
const SPECIAL = /[\\`*_~[\]!<&\n]|https?:\/\/|www\./gi;
const ESCAPABLE = /^[!-/:-@[-`{-~]$/;

/** What a delimiter has beside it; the ends of the text are blank. */
type Beside = "blank" | "mark" | "letter";

function besides(letter: string): Beside {
  const code = letter.codePointAt(0) ?? 0x20;
  if (code > 0x7f) return /\s/u.test(letter) ? "blank" : /[\p{P}\p{S}]/u.test(letter) ? "mark" : "letter";
  if (code <= 0x20) return "blank";
  return ESCAPABLE.test(letter) ? "mark" : "letter";
}

/** Whether a closer takes an opener: the rules of CommonMark, so that `*a**b*` is what it looks like. */
function fits(opener: Run, closer: Run): boolean {
  if (opener.letter !== closer.letter) return false;
  if (closer.letter === "~") return opener.length === closer.length;
  if (!opener.canClose && !closer.canOpen) return true;
  return (opener.length + closer.length) % 3 !== 0 || (opener.length % 3 === 0 && closer.length % 3 === 0);
}

/** Lets closers find their openers. Those that found none are remembered by kind: no later one of that kind asks further back. */
function pair(runs: readonly Run[], work: Work): void {
  const stack: Run[] = [];
  const inVain: number[] = []; // up to which opener, by the kind of the closer
  for (const run of runs) {
    const kind = "*_~".indexOf(run.letter) * 6 + (run.length % 3) * 2 + (run.canOpen ? 1 : 0);
    while (run.canClose && run.left > 0) {
      const until = inVain[kind] ?? -1;
      let place = stack.length - 1;
      for (; place >= 0; place--) {
        work.spend(1);
        const opener = stack[place];
        if (!opener || opener.place <= until || fits(opener, run)) break;
      }
      const opener = stack[place];
      if (!opener || opener.place <= until) {
        inVain[kind] = stack.at(-1)?.place ?? -1;
        break;
      }
      join(opener, run, work);
      stack.length = opener.left > 0 ? place + 1 : place;
    }
    if (run.canOpen && run.left > 0) stack.push(run);
  }
}

function join(opener: Run, closer: Run, work: Work): void {
  work.spend(1);
  const used = closer.letter === "~" ? closer.length : opener.left >= 2 && closer.left >= 2 ? 2 : 1;
  opener.left -= used;
  closer.left -= used;
  (opener.opens ??= []).push(used);
  (closer.closes ??= []).push(used);
}

function words(nodes: readonly Inline[]): string {
  return nodes.map((node) => ("text" in node ? node.text : "inner" in node ? words(node.inner) : "\n")).join("");
}

type Nest = Inline & { inner: Inline[] };

/** The nodes that are open while the tree is made. */
class Tree {
  readonly top: Inline[] = [];
  private readonly open: { node: Nest; literal: boolean; inner: Inline[] }[] = [];
  private links = 0;

  private get inner(): Inline[] {
    return this.open.at(-1)?.inner ?? this.top;
  }

  put(node: Inline): void {
    const last = this.inner.at(-1);
    if (node.kind === "text" && last?.kind === "text") last.text += node.text;
    else if (node.kind !== "text" || node.text !== "") this.inner.push(node);
  }

  text(text: string): void {
    this.put({ kind: "text", text });
  }

  /** What is too deep, and a link in a link, stays the letters that it is: `text` here, and what `end` is given. */
  begin(node: Nest, text: string): void {
    const literal = this.open.length >= DEPTH_MAX || (node.kind === "link" && this.links > 0);
    if (node.kind === "link") this.links++;
    if (literal) this.text(text);
    this.open.push({ node, literal, inner: literal ? this.inner : node.inner });
  }

  end(text: string): void {
    const ended = this.open.pop();
    if (!ended) return;
    const { node, literal } = ended;
    if (node.kind === "link") this.links--;
    if (literal) return this.text(text);
    if (node.kind === "link" && node.image) node.inner = plain(words(node.inner) || node.href);
    this.put(node);
  }
}

class InlineReader {
  private readonly pieces: Piece[] = [];
  private readonly runs: Run[] = [];
  private readonly brackets: Bracket[] = [];
  private inertBrackets = 0; // so many of them, from the outermost, have a link in them and can become none
  private at = 0;
  private ticks: Map<number, number[]> | undefined; // where runs of backticks begin, the last first, by their length

  constructor(private readonly source: string, private readonly definitions: Definitions, private readonly work: Work) {}

  read(): Inline[] {
    while (this.at < this.source.length) {
      SPECIAL.lastIndex = this.at;
      const found = SPECIAL.exec(this.source);
      const next = found?.index ?? this.source.length;
      this.work.spend(next - this.at + 1);
      this.literal(this.source.slice(this.at, next));
      this.at = next;
      if (found) this.special(found[0]);
    }
    pair(this.runs, this.work);
    return this.tree();
  }

  private literal(text: string): void {
    const last = this.pieces.at(-1);
    if (last?.kind === "node" && last.node.kind === "text") last.node.text += text;
    else if (text !== "") this.pieces.push({ kind: "node", node: { kind: "text", text } });
  }

  /** So many letters are text. */
  private take(count: number): void {
    this.literal(this.source.slice(this.at, this.at + count));
    this.at += count;
  }

  private special(found: string): void {
    switch (found) {
      case "\\": return this.escape();
      case "`": return this.code();
      case "*": case "_": case "~": return this.run(found);
      case "!": return this.source[this.at + 1] === "[" ? this.bracket("![") : this.take(1);
      case "[": return this.bracket("[");
      case "]": return this.close();
      case "<": return this.angle();
      case "&": return this.entity();
      case "\n": return this.newline();
      default: return this.address(found.length);
    }
  }

  private escape(): void {
    const next = this.source[this.at + 1] ?? "";
    if (next === "\n") {
      this.at++;
      this.newline();
    } else if (ESCAPABLE.test(next)) {
      this.literal(next);
      this.at += 2;
    } else {
      this.take(1);
    }
  }

  private newline(): void {
    const last = this.pieces.at(-1);
    if (last?.kind === "node" && last.node.kind === "text") {
      const text = last.node.text.trimEnd();
      this.work.spend(last.node.text.length - text.length + 1);
      last.node.text = text;
    }
    this.pieces.push({ kind: "node", node: { kind: "break" } });
    this.at++;
  }

  private entity(): void {
    const [whole, name] = /^&(#39|[a-z]{2,4});/.exec(this.source.slice(this.at, this.at + 6)) ?? [];
    this.work.spend(6);
    const text = name !== undefined && Object.hasOwn(ENTITIES, name) ? ENTITIES[name] : undefined;
    if (whole === undefined || text === undefined) return this.take(1);
    this.literal(text);
    this.at += whole.length;
  }

  /** How often the letter stands here, one after the other. */
  private count(letter: string): number {
    let end = this.at;
    while (this.source[end] === letter) end++;
    this.work.spend(end - this.at + 1);
    return end - this.at;
  }

  /** Where runs of backticks are, looked for once. */
  private findTicks(): Map<number, number[]> {
    this.work.spend(this.source.length);
    const found = new Map<number, number[]>();
    for (const { 0: run, index } of [...this.source.matchAll(/`+/g)].reverse()) {
      this.work.spend(1);
      const places = found.get(run.length);
      if (places) places.push(index);
      else found.set(run.length, [index]);
    }
    return found;
  }

  private code(): void {
    const length = this.count("`");
    this.ticks ??= this.findTicks();
    const places = this.ticks.get(length) ?? [];
    while (places.length > 0 && (places.at(-1) ?? 0) < this.at + length) {
      this.work.spend(1);
      places.pop();
    }
    const end = places.at(-1);
    if (end === undefined) return this.take(length);
    this.work.spend(end - this.at);
    const text = this.source.slice(this.at + length, end).replaceAll("\n", " ");
    const padded = text.startsWith(" ") && text.endsWith(" ") && text.trim() !== "";
    this.pieces.push({ kind: "node", node: { kind: "code", text: padded ? text.slice(1, -1) : text } });
    this.at = end + length;
  }

  private run(letter: string): void {
    const length = this.count(letter);
    const before = besides(this.letterBefore());
    const after = besides(String.fromCodePoint(this.source.codePointAt(this.at + length) ?? 0x20));
    const left = after === "letter" || (after === "mark" && before !== "letter");
    const right = before === "letter" || (before === "mark" && after !== "letter");
    const inWords = letter !== "_";
    const canOpen = left && (inWords || !right || before === "mark");
    const canClose = right && (inWords || !left || after === "mark");
    if ((!canOpen && !canClose) || (letter === "~" && length > 2)) return this.take(length);
    const run: Run = { kind: "run", letter, length, left: length, canOpen, canClose, place: this.runs.length, closes: undefined, opens: undefined };
    this.runs.push(run);
    this.pieces.push(run);
    this.at += length;
  }

  private letterBefore(): string {
    const last = this.source[this.at - 1] ?? "";
    return /[\udc00-\udfff]/.test(last) ? this.source.slice(Math.max(0, this.at - 2), this.at) : last;
  }

  private bracket(text: string): void {
    this.at += text.length;
    this.brackets.push({ image: text === "![", piece: this.pieces.length, runs: this.runs.length, at: this.at, hasBrackets: false });
    this.pieces.push({ kind: "open", text, link: undefined });
  }

  private close(): void {
    const bracket = this.brackets.pop();
    const around = this.brackets.at(-1);
    if (around) around.hasBrackets = true;
    const active = bracket && (bracket.image || this.brackets.length >= this.inertBrackets);
    this.inertBrackets = Math.min(this.inertBrackets, this.brackets.length);
    const target = active ? this.target(bracket) : undefined;
    if (!bracket || !target) return this.take(1);

    const text = this.source.slice(this.at, target.end);
    const href = safeAddress(target.href);
    if (href === undefined) {
      this.literal(text); // as it was written, with its address
    } else {
      this.link(bracket, href, text);
    }
    this.at = target.end;
  }

  private link(bracket: Bracket, href: string, text: string): void {
    const open = this.pieces[bracket.piece];
    if (open?.kind !== "open") return;
    open.link = { href, image: bracket.image };
    this.pieces.push({ kind: "close", text });
    pair(this.runs.slice(bracket.runs), this.work);
    this.runs.length = bracket.runs;
    if (!bracket.image) this.inertBrackets = this.brackets.length;
  }

  /** Where what ends with the `]` here leads to, and where that ends. */
  private target(bracket: Bracket): { href: string; end: number } | undefined {
    const next = this.source[this.at + 1];
    const direct = next === "(" ? this.directTarget(this.at + 2) : undefined;
    if (direct || this.definitions.size === 0) return direct;
    const named = next === "[" ? this.label(this.at + 2) : undefined;
    if (named && named.text.trim() !== "") return this.defined(named.text, named.end);
    if (bracket.hasBrackets || this.at - bracket.at > LABEL_MAX) return undefined;
    this.work.spend(this.at - bracket.at);
    return this.defined(this.source.slice(bracket.at, this.at), named?.end ?? this.at + 1);
  }

  private defined(label: string, end: number): { href: string; end: number } | undefined {
    const href = this.definitions.get(labelOf(label));
    return href === undefined ? undefined : { href, end };
  }

  private label(from: number): { text: string; end: number } | undefined {
    let end = from;
    while (end < this.source.length && end - from <= LABEL_MAX && this.source[end] !== "]" && this.source[end] !== "[") end++;
    this.work.spend(end - from + 1);
    return this.source[end] === "]" ? { text: this.source.slice(from, end), end: end + 1 } : undefined;
  }

  /** `address "title")` */
  private directTarget(from: number): { href: string; end: number } | undefined {
    const start = this.skipSpace(from);
    const pointed = this.source[start] === "<";
    const end = pointed ? this.pointedEnd(start + 1) : this.addressEnd(start);
    if (end === undefined) return undefined;
    const href = unescaped(this.source.slice(pointed ? start + 1 : start, end));
    const afterAddress = pointed ? end + 1 : end;
    let at = this.skipSpace(afterAddress);
    if (at > afterAddress) at = this.skipSpace(this.titleEnd(at) ?? at);
    return this.source[at] === ")" ? { href, end: at + 1 } : undefined;
  }

  private skipSpace(from: number): number {
    let at = from;
    while (this.source[at] === " " || this.source[at] === "\n" || this.source[at] === "\t") at++;
    this.work.spend(at - from + 1);
    return at;
  }

  private pointedEnd(from: number): number | undefined {
    let at = from;
    while (at < this.source.length && !/[<>\n]/.test(this.source[at] ?? "")) at += this.source[at] === "\\" ? 2 : 1;
    this.work.spend(at - from + 1);
    return this.source[at] === ">" ? at : undefined;
  }

  private addressEnd(from: number): number | undefined {
    let depth = 0;
    let at = from;
    for (; at < this.source.length; at++) {
      this.work.spend(1);
      const letter = this.source[at] ?? "";
      if (letter <= " ") break;
      if (letter === "\\" && ESCAPABLE.test(this.source[at + 1] ?? "")) at++;
      else if (letter === "(" && ++depth > PARENTHESES_MAX) return undefined;
      else if (letter === ")" && --depth < 0) break;
    }
    return depth > 0 ? undefined : at;
  }

  private titleEnd(from: number): number | undefined {
    const first = this.source[from] ?? "";
    const last = first === "(" ? ")" : first;
    if (!/["'(]/.test(first)) return undefined;
    let at = from + 1;
    while (at < this.source.length && this.source[at] !== last && !(first === "(" && this.source[at] === "(")) {
      at += this.source[at] === "\\" ? 2 : 1;
    }
    this.work.spend(at - from);
    return this.source[at] === last ? at + 1 : undefined;
  }

  /** `<http://…>` is a link; what looks like a tag is text with nothing else in it. */
  private angle(): void {
    let end = this.at + 1;
    while (end < this.source.length && this.source[end] !== "<" && this.source[end] !== ">") end++;
    this.work.spend(end - this.at);
    if (this.source[end] !== ">") return this.take(1);
    const inner = this.source.slice(this.at + 1, end);
    const href = /\s/.test(inner) ? undefined : safeAddress(inner);
    if (href !== undefined) {
      this.pieces.push({ kind: "open", text: "<", link: { href, image: false } });
      this.literal(inner);
      this.pieces.push({ kind: "close", text: ">" });
      this.at = end + 1;
    } else {
      this.take(/^(?:[/!?]|[a-z][\w-]*(?:[\s/:]|$))/i.test(inner) ? end + 1 - this.at : 1);
    }
  }

  /** An address that stands in the text as it is. What ends the sentence does not belong to it. */
  private address(scheme: number): void {
    const [host = ""] = /^[a-z0-9]/i.exec(this.source[this.at + scheme] ?? "") ?? [];
    if (host === "" || /[a-z0-9]/i.test(this.source[this.at - 1] ?? "")) return this.take(scheme);
    const stop = this.brackets.length > 0 ? /[\s<\]]/ : /[\s<]/;
    let end = this.at + scheme;
    let open = 0;
    for (let letter = this.source[end]; letter !== undefined && !stop.test(letter); letter = this.source[++end]) {
      open += letter === "(" ? 1 : letter === ")" ? -1 : 0;
    }
    this.work.spend(2 * (end - this.at));
    for (;;) {
      const last = this.source[end - 1] ?? "";
      if (last === ")" && open < 0) open++;
      else if (!/[?!.,:;*_'"~]/.test(last)) break;
      end--;
    }
    const text = this.source.slice(this.at, end);
    const href = safeAddress(/^www/i.test(text) ? `http://${text}` : text);
    if (href === undefined) return this.take(text.length);
    this.pieces.push({ kind: "open", text: "", link: { href, image: false } });
    this.literal(text);
    this.pieces.push({ kind: "close", text: "" });
    this.at = end;
  }

  private tree(): Inline[] {
    const tree = new Tree();
    for (const piece of this.pieces) {
      this.work.spend(1);
      switch (piece.kind) {
        case "node": tree.put(piece.node); break;
        case "run": this.runInto(tree, piece); break;
        case "close": tree.end(piece.text); break;
        case "open":
          if (piece.link) tree.begin({ kind: "link", ...piece.link, inner: [] }, piece.text);
          else tree.text(piece.text);
      }
    }
    return tree.top;
  }

  private runInto(tree: Tree, run: Run): void {
    this.work.spend(run.length);
    const { letter, left, closes = [], opens = [] } = run;
    for (const used of closes) tree.end(letter.repeat(used));
    if (left > 0) tree.text(letter.repeat(left));
    for (let place = opens.length - 1; place >= 0; place--) {
      const used = opens[place] ?? 1;
      tree.begin({ kind: letter === "~" ? "del" : used === 2 ? "strong" : "em", inner: [] }, letter.repeat(used));
    }
  }
}

export function readInline(text: string, definitions: Definitions, work: Work): Inline[] {
  return new InlineReader(text, definitions, work).read();
}
