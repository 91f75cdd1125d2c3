import { strict as assert } from "node:assert/strict";
import { cpuUsage } from "node:process";
import { test } from "node:test";
import { MARKDOWN_MAX, readMarkdown, safeAddress, type Block, type Inline } from "./markdown.ts";

function words(nodes: readonly Inline[]): string {
  return nodes.map((node) => ("text" in node ? node.text : "inner" in node ? words(node.inner) : "\n")).join("");
}

function addresses(blocks: readonly Block[]): string[] {
  const found: string[] = [];
  JSON.stringify(blocks, (key, value: unknown) => {
    if (key === "href") found.push(String(value));
    return value;
  });
  return found;
}

function paragraph(text: string): Inline[] {
  const [first] = readMarkdown(text);
  assert.equal(first?.kind, "paragraph");
  return first?.kind === "paragraph" ? first.inner : [];
}

// Security: markup from models stays text.
test("raw markup is text, as it was written", () => {
  for (const text of ["<script>alert(1)</script>", "a <b>b</b> c", "<img src=x onerror=alert(1)>", "<!-- x -->", "<svg/onload=1>"]) {
    assert.equal(words(paragraph(text)), text);
    assert.ok(paragraph(text).every((node) => node.kind === "text"));
  }
});

test("links lead to http and https only", () => {
  for (const bad of ["javascript:alert(1)", "JaVaScRiPt:1", "data:text/html,x", "vbscript:1", "file:///etc/passwd", "/v1/agents", "//evil.example",
    "java\tscript:1", "mailto:a@b.c", " javascript:1", "\u0001javascript:1", "blob:http://x/y"]) {
    assert.equal(safeAddress(bad), undefined);
    assert.deepEqual(addresses(readMarkdown(`[x](${bad}) ![y](${bad}) <${bad}>`)), []);
  }
  assert.deepEqual(addresses(readMarkdown("[x](https://a.example/b) and http://c.example")), ["https://a.example/b", "http://c.example/"]);
});

test("an image is a link", () => {
  assert.deepEqual(paragraph("![cat](https://a.example/cat.png)"),
    [{ kind: "link", href: "https://a.example/cat.png", image: true, inner: [{ kind: "text", text: "cat" }] }]);
});

test("the usual things are understood", () => {
  const kinds = readMarkdown("# T\n\ntext **b** *i* ~~d~~ `c`\n\n- a\n- [x] b\n\n1. x\n\n> q\n\n```js\ncode\n```\n\n|a|b|\n|-|-:|\n|1|2|\n\n---\n").map((block) => block.kind);

  assert.deepEqual(kinds, ["heading", "paragraph", "list", "list", "quote", "code", "table", "rule"]);
  assert.deepEqual(paragraph("a\nb"), [{ kind: "text", text: "a" }, { kind: "break" }, { kind: "text", text: "b" }]);
  assert.equal(words(paragraph("&lt;b&gt; &amp; &nope;")), "<b> & &nope;");
});

test("nothing that was written is left out, however deep or odd", () => {
  assert.match(JSON.stringify(readMarkdown(`${">".repeat(200)} deep`)), /deep/);
  assert.match(JSON.stringify(readMarkdown(`${"- ".repeat(100)}deep`)), /deep/);
  assert.match(JSON.stringify(readMarkdown("[a]: http://x.example 'title'")), /x\.example/);
  assert.deepEqual(readMarkdown(""), []);
  assert.equal(readMarkdown("*".repeat(MARKDOWN_MAX + 1)).length, 1);
});

// In time of the processor: how much else the machine has to do makes no difference.
test("texts made to be slow are read in well under a second", () => {
  const pieces = ["*", "_", "[", "![", "`", "<", "> ", "- ", "**a ", "[a](", "|", "&#", "~", "\\", "a@", "http://", "<a ", "<!--", "1. ", "\t", "[a][", "*_", "((", "  \n"];
  for (const piece of pieces) {
    const text = piece.repeat(Math.floor(MARKDOWN_MAX / piece.length));
    const start = cpuUsage();
    readMarkdown(text);
    const took = cpuUsage(start).user / 1000;
    assert.ok(took < 900, `${JSON.stringify(piece)} took ${took} ms`);
  }
});
