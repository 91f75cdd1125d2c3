// Markdown as a small tree of our own. `marked` only finds the tokens; what they become is decided here: raw HTML is text,
// links go to http and https only, and an image is a link. Nothing here can become markup, since the tree has none.
import { lexer, type Token, type Tokens } from "marked";

export type Inline =
  | { kind: "text" | "code"; text: string }
  | { kind: "strong" | "em" | "del"; inner: Inline[] }
  | { kind: "link"; href: string; image: boolean; inner: Inline[] }
  | { kind: "break" };

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

/** Longer texts are shown as they are: nobody formats that much by hand, and the time to read it grows with its length. */
export const MARKDOWN_MAX = 20_000;
const DEPTH_MAX = 8;

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

const ENTITIES: Record<string, string> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: "\u00a0", "#39": "'" };

/** The few entities that models write; in the page they are text like everything else. */
function decoded(text: string): string {
  return text.replace(/&(#39|[a-z]+);/g, (whole, name: string) => (Object.hasOwn(ENTITIES, name) ? (ENTITIES[name] ?? whole) : whole));
}

function plain(text: string): Inline[] {
  return text === "" ? [] : [{ kind: "text", text }];
}

function link(token: Tokens.Link | Tokens.Image, depth: number): Inline[] {
  const href = safeAddress(token.href);
  const image = token.type === "image";
  if (href === undefined) return plain(token.raw);
  if (image) return [{ kind: "link", href, image, inner: plain(token.text || href) }];
  return [{ kind: "link", href, image, inner: inlines(token.tokens, depth + 1) }];
}

function inline(token: Token, depth: number): Inline[] {
  if (depth > DEPTH_MAX) return plain(token.raw);
  switch (token.type) {
    case "strong": case "em": case "del":
      return [{ kind: token.type, inner: inlines(token.tokens, depth + 1) }];
    case "codespan": return [{ kind: "code", text: (token as Tokens.Codespan).text }];
    case "br": return [{ kind: "break" }];
    case "link": case "image": return link(token as Tokens.Link | Tokens.Image, depth);
    case "escape": return plain((token as Tokens.Escape).text);
    case "text": return token.tokens ? inlines(token.tokens, depth + 1) : plain(decoded((token as Tokens.Text).text));
    case "checkbox": return [];
    default: return plain(token.raw); // html, and whatever else there may be one day
  }
}

function inlines(tokens: readonly Token[] | undefined, depth: number): Inline[] {
  return (tokens ?? []).flatMap((token) => inline(token, depth));
}

function alignOf(value: string | null): Align {
  return value === "left" || value === "right" || value === "center" ? value : undefined;
}

function table(token: Tokens.Table, depth: number): Block {
  return {
    kind: "table",
    align: token.align.map(alignOf),
    header: token.header.map((cell) => inlines(cell.tokens, depth + 1)),
    rows: token.rows.map((row) => row.map((cell) => inlines(cell.tokens, depth + 1))),
  };
}

function list(token: Tokens.List, depth: number): Block {
  const items = token.items.map((item) => ({
    blocks: blocks(item.tokens, depth + 1),
    ...(item.task ? { checked: item.checked === true } : {}),
  }));
  return { kind: "list", ordered: token.ordered, start: token.start === "" ? 1 : token.start, items };
}

function block(token: Token, depth: number): Block[] {
  if (depth > DEPTH_MAX) return [{ kind: "paragraph", inner: plain(token.raw) }];
  switch (token.type) {
    case "space": case "checkbox": return [];
    case "hr": return [{ kind: "rule" }];
    case "heading": return [{ kind: "heading", depth: (token as Tokens.Heading).depth, inner: inlines(token.tokens, depth) }];
    case "code": return [{ kind: "code", language: (token as Tokens.Code).lang ?? "", text: (token as Tokens.Code).text }];
    case "blockquote": return [{ kind: "quote", blocks: blocks(token.tokens, depth + 1) }];
    case "list": return [list(token as Tokens.List, depth)];
    case "table": return [table(token as Tokens.Table, depth)];
    case "paragraph": return [{ kind: "paragraph", inner: inlines(token.tokens, depth) }];
    case "text": return [{ kind: "paragraph", inner: inline(token, depth) }];
    // html, and definitions of links: what was written is shown.
    default: return [{ kind: "paragraph", inner: plain(token.raw.trimEnd()) }];
  }
}

function blocks(tokens: readonly Token[] | undefined, depth: number): Block[] {
  return (tokens ?? []).flatMap((token) => block(token, depth));
}

export function readMarkdown(text: string): Block[] {
  const asItIs: Block[] = [{ kind: "paragraph", inner: plain(text) }];
  if (text.length > MARKDOWN_MAX) return asItIs;
  try {
    return blocks(lexer(text, { gfm: true, breaks: true }), 0);
  } catch {
    return asItIs;
  }
}
