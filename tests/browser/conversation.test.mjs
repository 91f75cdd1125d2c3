// What a conversation looks like: days and times, Markdown, search, punctuality, motion, widths, and what a screen reader hears.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { bubble, closeBrowser, interpose, openPanel, type, until, withServer } from "./support.mjs";

after(closeBrowser);

const DAY = 86_400_000;
const SHANGHAI = 8 * 3_600_000; // the zone of the tests' browser

/** Midnight in the browser's zone, so many days from today. */
function midnight(days) {
  return Math.floor((Date.now() + SHANGHAI) / DAY + days) * DAY - SHANGHAI;
}

/** Lines are said at these times, as far as the page is told. */
function saidAt(context, times) {
  return interpose(context, {
    fromServer: (frame) => {
      const at = frame.op === "message" ? times[frame.seq - 1] : undefined;
      return at === undefined ? frame : { ...frame, ...at };
    },
  });
}

function at(time) {
  return { createdAt: new Date(time).toISOString(), saidAt: new Date(time).toISOString() };
}

// P13
test("every line has its time, and every day its heading, in the zone of the browser", withServer(async (server, context) => {
  const times = [midnight(-400), midnight(-3), midnight(0) - 1000, midnight(0), midnight(0) + 60_000];
  await saidAt(context, times.map(at));
  const session = await server.session();
  const page = await openPanel(context, server, session);
  for (let count = 1; count <= times.length; count++) await server.say(session, `line ${count}`);
  await bubble(page, times.length).waitFor();

  const headings = await page.locator(".day").allInnerTexts();
  const long = (time, more = {}) => new Intl.DateTimeFormat("en-GB", { timeZone: "Asia/Shanghai", weekday: "long", day: "numeric", month: "long", ...more }).format(time);
  const yearOf = (time) => new Date(time + SHANGHAI).getUTCFullYear();
  const years = yearOf(times[1]) === yearOf(Date.now()) ? {} : { year: "numeric" };
  assert.deepEqual(headings, [long(times[0], { year: "numeric" }), long(times[1], years), "Yesterday", "Today"]);
  assert.deepEqual(await page.locator(".time-button").allTextContents(), ["00:00", "00:00", "23:59", "00:00", "00:01"]);
  assert.match(await page.locator(".time-button").nth(2).getAttribute("title"), /23:59:59/);
}));

const MARKDOWN = `# Plan

**bold** *slanted* ~~gone~~ \`code\` and <b>raw</b>

- one
- two

3. three

> said

| a | b |
|---|---|
| 1 | 2 |

[to there](https://example.org/x) ![a picture](https://example.org/y.png) [nowhere](javascript:alert(1))

---`;

// P13
test("Markdown is set, raw HTML is text, a picture is a link, and no address but http leads anywhere", withServer(async (server, context) => {
  const session = await server.session();
  const page = await openPanel(context, server, session);
  await server.say(session, MARKDOWN);
  await bubble(page, 1).waitFor();

  const counts = await bubble(page, 1).locator(".bubble").evaluate((each) => Object.fromEntries(
    ["strong", "em", "del", "code", "ul > li", "ol > li", "blockquote", "td", "hr", ".heading", "a", "b", "img"].map((what) => [what, each.querySelectorAll(what).length])));
  assert.deepEqual(counts, { strong: 1, em: 1, del: 1, code: 1, "ul > li": 2, "ol > li": 1, blockquote: 1, td: 2, hr: 1, ".heading": 1, a: 2, b: 0, img: 0 });
  assert.equal(await bubble(page, 1).locator("ol").getAttribute("start"), "3");
  const text = await bubble(page, 1).locator(".bubble").innerText();
  assert.match(text, /<b>raw<\/b>/);
  assert.match(text, /\[nowhere\]\(javascript:alert\(1\)\)/);
  assert.deepEqual(await bubble(page, 1).locator("a").evaluateAll((all) => all.map((each) => each.href)), ["https://example.org/x", "https://example.org/y.png"]);
}));

// P13
test("search finds what was said in either language, says when there is nothing or when it fails, and goes to the line", withServer(async (server, context) => {
  const session = await server.session();
  await server.batch(session, [...Array.from({ length: 60 }, (_, index) => `Tea number ${index + 1}`), "明天喝茶"]);
  const page = await openPanel(context, server, session);
  await bubble(page, 61).waitFor();
  await page.getByRole("button", { name: "Search this chat" }).click();
  const field = page.getByRole("searchbox");

  await field.fill("tEA nuMBer");
  await page.getByText("50 found").waitFor();
  await page.getByRole("button", { name: "Search older messages" }).click();
  await page.getByText("60 found").waitFor();
  await field.fill("coffee");
  await page.getByText("Nothing found.").waitFor();
  await page.route("**/messages?search=*", (route) => route.abort());
  await field.fill("cocoa");
  await page.getByText("The search did not work").waitFor();
  await page.unroute("**/messages?search=*");
  await field.fill("喝茶");
  await page.locator(".result", { hasText: "明天喝茶" }).click();
  await page.locator('.highlighted[data-seq="61"]').waitFor();
  assert.equal(await field.count(), 0);
}));

// D6, P8
test("how punctual a line was is said for one at once, a late one and one that was forced", withServer(async (server, context) => {
  const now = Date.now();
  const iso = (time) => new Date(time).toISOString();
  await saidAt(context, [
    { createdAt: iso(now), saidAt: iso(now + 3) },
    { createdAt: iso(now - 60_000), dueAt: iso(now - 5000), saidAt: iso(now) },
    { createdAt: iso(now - 60_000), dueAt: iso(now + 7_200_000), saidAt: iso(now) },
  ]);
  const session = await server.session();
  const page = await openPanel(context, server, session);
  for (let count = 1; count <= 3; count++) await server.say(session, `line ${count}`);
  await bubble(page, 3).waitFor();

  for (let seq = 1; seq <= 3; seq++) await bubble(page, seq).getByRole("button", { name: /How punctual/ }).click();
  const said = async (seq) => bubble(page, seq).locator(".punctuality dd").allInnerTexts();
  assert.equal((await said(1))[1], "at once");
  assert.equal((await said(1))[3], "on time (3 ms)");
  assert.equal((await said(2))[3], "5.0 s late");
  assert.equal((await said(3))[3], "2 h early, because the server was stopping");
}));

for (const [reducedMotion, moves] of [["no-preference", true], ["reduce", false]]) {
  // P13
  test(`what moves ${moves ? "moves" : "stands still for those who want that"}`, withServer(async (server, context) => {
    const session = await server.session();
    const page = await openPanel(context, server, session);
    await server.ok("POST", `/v1/sessions/${session}/drafts`, { from: "bot", draftId: "d", text: "I am writing" });
    await page.locator(".draft .dots i").first().waitFor({ state: "attached" });
    const lasting = () => page.evaluate(() => document.getAnimations().filter((each) => each.playState === "running" && each.effect.getTiming().iterations === Infinity).length);

    if (moves) await until("something moves", async () => (await lasting()) > 0);
    else await until("all stands still", () => page.evaluate(() => document.getAnimations().every((each) => each.playState !== "running")));
    assert.equal((await lasting()) > 0, moves);
  }, { context: { reducedMotion } }));
}

// P13
test("from a small phone to a very wide screen nothing is cut off or has to be scrolled sideways", withServer(async (server, context) => {
  const session = await server.session();
  await server.say(session, `${MARKDOWN}\n\n${"w".repeat(300)}\n\n\`\`\`\n${"x".repeat(400)}\n\`\`\``);
  await server.say(session, { text: "Which?", quickReplies: ["one", "w".repeat(120), "三"] });
  await server.say(session, "later", { delayMs: 3_600_000 });
  const page = await openPanel(context, server, session);
  for (const width of [320, 390, 600, 768, 1024, 1180, 1440, 2560]) {
    await page.setViewportSize({ width, height: 800 });
    await page.reload();
    await bubble(page, 2).locator(".reply").nth(2).waitFor();
    const wide = await page.evaluate(() => [document.documentElement, document.querySelector(".log")].map((each) => each.scrollWidth - each.clientWidth));
    assert.deepEqual(wide, [0, 0], `at ${width}`);
    const composer = await page.getByRole("textbox", { name: "Write a message" }).boundingBox();
    assert.ok(composer.width >= 200 && composer.x >= 0 && composer.x + composer.width <= width, `at ${width}`);
    const text = await bubble(page, 1).locator(".bubble").boundingBox();
    assert.ok(text.width <= 900, `lines stay readable at ${width}: ${text.width}`);
  }
}));

// P13
test("a screen reader hears who says what, what became of an answer, and how the connection is", withServer(async (server, context) => {
  const session = await server.session();
  const page = await openPanel(context, server, session);
  await page.getByRole("navigation", { name: "Chats" }).waitFor();
  await page.getByRole("main").waitFor();
  await page.getByRole("complementary", { name: "What is coming" }).waitFor();
  const log = page.getByRole("log", { name: "Conversation with bot" });
  await server.say(session, { text: "Lunch?", quickReplies: ["noodles", "rice"] });

  const question = log.getByRole("article", { name: "Message from bot" });
  const group = question.getByRole("group", { name: "Quick replies" });
  await group.getByRole("button", { name: "rice" }).click();
  await question.getByRole("status").getByText("You answered").waitFor();
  assert.equal(await group.getByRole("button", { name: "rice", pressed: true, disabled: true }).count(), 1);
  await log.getByRole("article", { name: "Message from You" }).waitFor();
  await server.end("SIGKILL");
  await page.getByRole("status").getByText("Offline").waitFor();
  await type(page, "kept");
  await page.getByRole("status").getByText("Waiting for the connection").waitFor();
}, { context: { viewport: { width: 1440, height: 900 } } }));
