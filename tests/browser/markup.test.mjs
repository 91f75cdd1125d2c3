// Markup in anything that others write stays text: no script runs, nothing is asked of another origin, no element appears.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { payloads } from "./markup_grammar.mjs";
import { bubble, closeBrowser, interpose, online, openPanel, type, until, watch, withServer } from "./support.mjs";

after(closeBrowser);

const COUNT = 300;
const ALL = payloads(COUNT);
const SHORT = payloads(COUNT, { seed: 2, max: 190 });

/** Looks for whatever a text could have become. */
async function assertOnlyText(page) {
  const found = await page.evaluate(() => {
    const wrong = [];
    const allowed = new Set(["/belfry.svg"]);
    for (const each of document.querySelectorAll("#app *")) {
      const name = each.localName;
      if (/^(script|style|iframe|object|embed|link|meta|base|video|audio|math|template|marquee|foreignobject|animate|set|use|image)$/.test(name)) wrong.push(name);
      if (name === "img" && !allowed.has(each.getAttribute("src"))) wrong.push(each.outerHTML);
      if (name === "a" && each.getAttribute("href") !== "/about") {
        const good = /^https?:\/\//.test(each.getAttribute("href")) && each.rel === "noopener noreferrer" && each.target === "_blank";
        if (!good) wrong.push(each.outerHTML);
      }
      for (const { name: attribute, value } of each.attributes) {
        if (attribute.startsWith("on") || attribute === "srcdoc" || attribute === "formaction") wrong.push(`${name} ${attribute}=${value}`);
        if (attribute === "style" && name !== "textarea") wrong.push(`${name} ${attribute}=${value}`);
      }
    }
    return { wrong, pwned: window.__pwned, scripts: document.scripts.length, sheets: document.styleSheets.length };
  });
  assert.deepEqual(found, { wrong: [], pwned: undefined, scripts: 1, sheets: 1 });
  assert.deepEqual(page.seen, { errors: [], strays: [], dialogs: [] });
}

// Security: markup from models stays text.
test("300 payloads as texts of messages stay text", withServer(async (server, context) => {
  const session = await server.session();
  await server.batch(session, ALL);
  const page = await openPanel(context, server, session);
  const seen = new Set();
  await bubble(page, COUNT).waitFor();
  while (!seen.has(1)) {
    for (const seq of await page.$$eval("[data-seq]", (all) => all.map((each) => Number(each.dataset.seq)))) seen.add(seq);
    await assertOnlyText(page);
    const first = Math.min(...seen);
    await page.evaluate(() => { document.querySelector(".log").scrollTop = 0; });
    if (first > 1) await until("older lines", async () => (await page.$eval("[data-seq]", (each) => Number(each.dataset.seq))) < first);
  }
  assert.equal(seen.size, COUNT);
}));

// Q7: the label is what is sent.
test("300 payloads as quick replies are shown and sent as they are", withServer(async (server, context) => {
  const session = await server.session();
  const page = await openPanel(context, server, session);
  for (let place = 0; place < COUNT; place += 10) {
    await server.say(session, { text: "Which one?", quickReplies: SHORT.slice(place, place + 10) });
  }
  await bubble(page, COUNT / 10).locator(".reply").nth(9).waitFor();
  const shown = await page.$$eval(".reply > span", (all) => all.map((each) => each.textContent));
  assert.deepEqual(shown, SHORT);
  await assertOnlyText(page);

  await bubble(page, COUNT / 10).locator(".reply").nth(4).click();
  await bubble(page, COUNT / 10).locator('[data-state="answered"]').waitFor();
  assert.equal((await server.lines(session)).at(-1).text, SHORT.at(-6));
  await assertOnlyText(page);
}));

// Security: markup from models stays text.
test("300 payloads as titles of chats stay text", withServer(async (server, context) => {
  await server.addAgent("bot");
  const ids = [];
  for (const title of SHORT) {
    const answer = await server.call("POST", "/v1/sessions", { kind: "group", users: ["user"], agents: ["bot"], title: title.replace(/[\n\t]/g, " ") });
    if (answer.status === 201) ids.push(answer.body.sessionId);
  }
  assert.ok(ids.length > COUNT * 0.9, `${ids.length} titles were taken`);
  const page = await openPanel(context, server, ids[0]);
  await until("all chats", async () => (await page.locator(".chat").count()) >= ids.length);
  await assertOnlyText(page);
  for (const id of ids.slice(0, 10)) {
    await page.locator(`[data-session="${id}"]`).click();
    await page.locator(`[data-session="${id}"][aria-current]`).waitFor();
    await assertOnlyText(page);
  }
}));

// Security: markup from models stays text.
test("300 payloads as texts of scheduled messages stay text", withServer(async (server, context) => {
  const at = new Date(Date.now() + 3_600_000).toISOString();
  const page = await openPanel(context, server, await server.session("bot"));
  for (const [agent, part] of [["one", ALL.slice(0, 150)], ["two", ALL.slice(150)]]) {
    const session = await server.session(agent);
    for (const text of part) await server.ok("POST", "/v1/scheduled", { session_id: session, send_at: at, message_text: text });
    await page.goto(`${server.url}/#${session}`);
    await until("all items", async () => (await page.locator(".coming-item").count()) === part.length);
    await assertOnlyText(page);
  }
}, { context: { viewport: { width: 1440, height: 900 } } }));

// Security: markup from models stays text.
test("300 payloads as drafts stay text", withServer(async (server, context) => {
  const session = await server.session();
  const page = await openPanel(context, server, session);
  for (let place = 0; place < COUNT; place += 15) {
    const round = ALL.slice(place, place + 15);
    await Promise.all(round.map((text, index) => server.ok("POST", `/v1/sessions/${session}/drafts`, { from: "bot", draftId: `d${index}`, text: `${text}\n\n№${place}.` })));
    await until("the drafts", async () => (await page.locator(".draft", { hasText: `№${place}.` }).count()) === round.length);
    await assertOnlyText(page);
  }
}));

// Security: markup from models stays text.
test("300 payloads as reasons of a refusal, and as what one types oneself, stay text", withServer(async (server, context) => {
  const session = await server.session();
  let count = 0;
  await interpose(context, {
    fromPage: (frame, socket) => {
      if (frame.op !== "send") return frame;
      socket.say({ op: "error", key: frame.key, session, error: "disk_full", message: ALL[count++ % COUNT] });
      return undefined;
    },
  });
  const page = await openPanel(context, server, session);
  for (const [place, text] of ALL.entries()) {
    if (place === COUNT / 2) { // as many as wait are kept, and no more
      await page.evaluate(() => localStorage.clear());
      await page.reload();
      await online(page);
    }
    await type(page, text);
    await until("it was refused", () => count === place + 1);
    if ((place + 1) % 50 !== 0) continue;
    await page.locator(".pending-failed").last().waitFor();
    await assertOnlyText(page);
  }
}));

// Security: markup from models stays text.
test("names have no room for markup, and sources, ids and payloads that make no sense are text", withServer(async (server, context) => {
  for (const name of ["<b>", "a b", "<img/src=x>", "\"onload=1"]) {
    assert.equal((await server.call("POST", "/v1/agents", { id: name })).status, 400);
  }
  const session = await server.session();
  await interpose(context, {
    fromServer: (frame) => {
      if (frame.op !== "message") return frame;
      const text = ALL[frame.seq % COUNT];
      return { ...frame, from: text, to: text, source: text, messageId: text, createdAt: text, dueAt: text, answerBy: text, text: frame.seq % 2 ? "" : text, payload: { text }, closes: [text] };
    },
  });
  const page = await openPanel(context, server, session);
  for (let first = 1; first < COUNT; first += 75) {
    const texts = Array.from({ length: 75 }, (_, index) => `line ${first + index}`);
    await server.batch(session, texts);
    await bubble(page, first + 74).waitFor();
    await assertOnlyText(page);
  }
}));

/** Answers of the server to one address, each with the next payload in it. */
async function answers(page, address, make) {
  await page.route(address, (route) => route.fulfill({ contentType: "application/json", body: JSON.stringify(make()) }));
}

// Security: markup from models stays text.
test("300 payloads in the list of chats, as who speaks there and what stays text", withServer(async (server, context) => {
  const session = await server.session();
  const page = await context.newPage();
  page.seen = watch(page, server.url);
  const at = new Date().toISOString();
  const chats = ALL.map((text, index) => ({ sessionId: index === 0 ? session : `other${index}`, kind: index % 2 ? "group" : "private", title: SHORT[index], users: [text], agents: [text], lastSeq: 1, lastAt: at, lastFrom: text, lastText: text }));
  await answers(page, "**/v1/sessions?*", () => ({ sessions: chats }));
  await page.goto(`${server.url}/#${session}`);
  await until("all chats", async () => (await page.locator(".chat").count()) === COUNT);
  await assertOnlyText(page);
}));

// Security: markup from models stays text.
test("300 payloads as names of agents and people, as results of a search, and as what is coming stay text", withServer(async (server, context) => {
  const session = await server.session();
  await server.say(session, "hello");
  const page = await openPanel(context, server, session);
  const at = new Date(Date.now() + 3_600_000).toISOString();
  await answers(page, "**/v1/agents", () => ({ agents: ALL.map((text) => ({ id: text, kind: text })) }));
  await answers(page, "**/v1/people", () => ({ people: ALL.map((text) => ({ id: text })) }));
  await answers(page, "**/messages?search=*", () => ({ messages: ALL.map((text, index) => ({ seq: index + 1, messageId: text, from: text, text, createdAt: at, saidAt: at })) }));
  await answers(page, "**/coming", () => ({ items: ALL.map((text, index) => ({ kind: ["message", "scheduled", "question"][index % 3], id: `${index}`, from: text, to: text, at, text, onTimeout: text, seq: 1 })) }));

  await page.keyboard.press("Alt+n");
  await until("all agents", async () => (await page.locator(".agent").count()) === COUNT);
  await assertOnlyText(page);
  await page.keyboard.press("Escape");
  await page.locator(".person").click();
  await until("all people", async () => (await page.locator("option").count()) === COUNT + 1);
  await assertOnlyText(page);
  await page.keyboard.press("Escape");
  await page.keyboard.press("Control+k");
  await page.getByRole("searchbox").fill("x");
  await until("all results", async () => (await page.locator(".result").count()) === COUNT);
  await assertOnlyText(page);
  await page.keyboard.press("Escape");
  await server.say(session, "later", { delayMs: 3_600_000 });
  await until("all that is coming", async () => (await page.locator(".coming-item").count()) === COUNT);
  await assertOnlyText(page);
}, { context: { viewport: { width: 1440, height: 900 } } }));

// Security: markup from models stays text.
test("300 payloads as remarks, as what a loser is told, as a chosen answer, and as an understood time stay text", withServer(async (server, context) => {
  const session = await server.session();
  let count = 0;
  const next = () => ALL[count++ % COUNT];
  let socket;
  await interpose(context, {
    fromServer: (frame, each) => {
      socket = each;
      if (frame.op !== "message") return frame;
      const by = next();
      return { ...frame, questionState: ["open", "answered", "defaulted", "closed", "expired"][frame.seq % 5], answer: { index: 0, text: by, by } };
    },
    fromPage: (frame, each) => {
      if (frame.op !== "send") return frame;
      each.say({ op: "error", key: frame.key, session, error: "already_answered", message: next() });
      return undefined;
    },
  });
  const page = await openPanel(context, server, session);
  for (let seq = 1; seq <= 60; seq++) await server.say(session, { text: "Which one?", quickReplies: ["this", "that"] });
  await bubble(page, 60).locator(".reply").nth(1).waitFor();
  await page.$$eval(".reply:enabled:first-child", (all) => all.forEach((button) => button.click()));
  await until("all losers are told", async () => (await page.locator(".reply:enabled").count()) === 0);
  await assertOnlyText(page);
  for (let place = 0; place < COUNT; place += 4) {
    for (const text of ALL.slice(place, place + 4)) socket.say({ op: "error", error: text, message: `${text} №${place}.` });
    await page.locator(".notice", { hasText: `№${place}.` }).nth(3).waitFor();
    await assertOnlyText(page);
  }

  await server.say(session, "later", { delayMs: 3_600_000 });
  await page.locator(".coming-item").getByRole("button", { name: "Edit" }).click();
  const at = new Date(Date.now() + 3_600_000).toISOString();
  let read = 0;
  await answers(page, "**/v1/when", () => {
    const some = ALL.slice(read * 25, ++read * 25);
    return { at, sentence: { en: some.join("\n"), zh: "" }, alternatives: [...some, at] };
  });
  for (let turn = 1; turn <= 12; turn++) {
    await page.getByLabel("When").fill(`in ${turn} hours`);
    await until("it is read", () => read === turn);
    await page.locator(".understood").waitFor();
    await assertOnlyText(page);
  }
}, { context: { viewport: { width: 1440, height: 900 } } }));

// Security: markup from models stays text.
test("the page has a policy that forbids inline script, and none in itself", withServer(async (server) => {
  const answer = await server.call("GET", "/");
  const policy = answer.headers["content-security-policy"];
  assert.match(policy, /default-src 'none'/);
  assert.match(policy, /script-src 'self'(;|$)/);
  assert.match(policy, /style-src 'self'(;|$)/);
  assert.ok(!/unsafe/.test(policy));
  assert.ok(!/<script(?![^>]*src=)|<style|\sstyle=|\son\w+=/i.test(answer.body));
  assert.ok(!/https?:/.test(answer.body));
}));
