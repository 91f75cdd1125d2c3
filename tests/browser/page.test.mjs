// The page as a whole: the first minute, signing in, a wrong clock, languages, themes, keyboard, screen readers, size.
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { gzipSync } from "node:zlib";
import { assertAccessible, bubble, closeBrowser, interpose, newContext, online, openPanel, Server, shownTexts, type, until, watch, withServer } from "./support.mjs";

after(closeBrowser);

const WIDE = { width: 1440, height: 900 };
const PHONE = { width: 390, height: 844 };
const SCRIPT_MAX = 60_000;

async function fill(server) {
  const session = await server.session();
  await server.ok("POST", `/v1/sessions/${session}/messages`, { text: "What is the plan?" });
  await server.say(session, "**Plan**\n\n1. `one`\n2. [two](https://example.org)\n\n> quote\n\n```js\nlet a = 1;\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n- [x] done");
  const { messageId } = await server.say(session, { text: "Lunch?", quickReplies: ["noodles", "rice"] });
  await until("the question", async () => (await server.lines(session)).length === 3);
  await server.ok("POST", `/v1/sessions/${session}/messages`, { inReplyTo: messageId, quickReplyIndex: 0 });
  await server.say(session, { text: "Dinner?", quickReplies: ["soup", "bread"], answerBy: new Date(Date.now() + 600_000).toISOString(), onTimeout: { action: "expire" } });
  await server.ok("POST", "/v1/scheduled", { session_id: session, send_at: new Date(Date.now() + 3_600_000).toISOString(), message_text: "stretch" });
  await until("all lines", async () => (await server.lines(session)).length === 5);
  return session;
}

// P1, P13
test("a newcomer's first minute: a hint what to type, a reminder set, its countdown, its arrival", withServer(async (server, context) => {
  const page = await openPanel(context, server);
  await page.getByText("Say something to concierge").waitFor();
  await page.getByRole("button", { name: "remind me in 20 seconds to stretch" }).click();
  const composer = page.getByRole("textbox", { name: "Write a message" });
  assert.equal(await composer.inputValue(), "remind me in 20 seconds to stretch");

  await composer.fill("remind me in 3 seconds to stretch");
  await page.keyboard.press("Enter");
  await page.locator(".coming-item", { hasText: "stretch" }).getByText(/in \d s/).waitFor();
  await page.locator('[data-source="scheduled_send"]', { hasText: "stretch" }).waitFor();

  const { sessions } = await server.ok("GET", "/v1/sessions?member=user");
  assert.equal(sessions.length, 1);
}, { context: { viewport: WIDE } }));

// P13
test("two tabs that open for the first time at once share one chat", withServer(async (server, context) => {
  const pages = await Promise.all([openPanel(context, server), openPanel(context, server)]);
  for (const page of pages) await page.getByText("Say something to concierge").waitFor();

  assert.equal((await server.ok("GET", "/v1/sessions?member=user")).sessions.length, 1);
}));

// P13
test("with a token the page asks for it, says when it is wrong, and remembers it only if told to", async () => {
  const folder = await mkdtemp(join(tmpdir(), "belfry-token-"));
  await writeFile(join(folder, "token"), "correct-horse-battery-staple\n", { mode: 0o600 });
  const server = await Server.start(["--token-file", join(folder, "token")]);
  const context = await newContext();
  try {
    const page = await context.newPage();
    page.seen = watch(page, server.url);
    await page.goto(server.url);
    const token = page.getByLabel("Token");
    await token.fill("wrong");
    await page.keyboard.press("Enter");
    await page.getByText("That token was not accepted.").waitFor();
    await assertAccessible(page, "login");
    await token.fill("correct-horse-battery-staple");
    await page.keyboard.press("Enter");
    await page.getByText("Say something to concierge").waitFor();
    await type(page, "help");
    await bubble(page, 2).waitFor();
    await page.reload();
    await bubble(page, 2).waitFor();
    assert.equal(await page.evaluate(() => localStorage.getItem("belfry.token")), null);

    const other = await context.newPage();
    await other.goto(server.url);
    await other.getByLabel("Token").fill("correct-horse-battery-staple");
    await other.getByLabel("Remember on this device").check();
    await other.keyboard.press("Enter");
    await bubble(other, 2).waitFor();
    const third = await context.newPage();
    await third.goto(server.url);
    await bubble(third, 2).waitFor();
    await third.locator(".person").click();
    await third.getByRole("button", { name: "Sign out" }).click();
    await third.getByLabel("Token").waitFor();
    assert.equal(await third.evaluate(() => localStorage.getItem("belfry.token")), null);
    assert.deepEqual(page.seen.strays, []);
  } finally {
    await context.close();
    await server.remove();
    await rm(folder, { recursive: true });
  }
});

// P13
test("with a wrong clock in the browser the countdowns are right, and it is said once", withServer(async (server, context) => {
  const session = await server.session();
  await server.ok("POST", "/v1/scheduled", { session_id: session, send_at: new Date(Date.now() + 600_000).toISOString(), message_text: "tea" });
  await context.addInitScript(() => {
    const real = Date.now;
    const ahead = 3 * 3_600_000;
    const Real = Date;
    window.Date = class extends Real {
      constructor(...given) { given.length === 0 ? super(real() + ahead) : super(...given); }
      static now() { return real() + ahead; }
    };
  });
  const page = await openPanel(context, server, session);

  await page.getByText("The clock of this device is 3 h ahead.").waitFor();
  await page.locator(".coming-item", { hasText: "tea" }).getByText(/in (9|10) min/).waitFor();
  await page.getByRole("button", { name: "Dismiss" }).click();
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(done)));
  await until("it is gone", async () => (await page.locator(".bar-clock").count()) === 0);
}, { context: { viewport: WIDE } }));

// P13
test("when the browser's clock is set while the page is open, the countdowns are right again", withServer(async (server, context) => {
  const session = await server.session();
  await server.ok("POST", "/v1/scheduled", { session_id: session, send_at: new Date(Date.now() + 600_000).toISOString(), message_text: "tea" });
  await context.addInitScript(() => {
    const real = Date.now;
    window.__ahead = 0;
    Date.now = () => real() + window.__ahead;
  });
  const page = await openPanel(context, server, session);
  const tea = page.locator(".coming-item", { hasText: "tea" });
  await tea.getByText(/in (9|10) min/).waitFor();

  await page.evaluate(() => { window.__ahead = -7_200_000; });
  await tea.getByText(/in 2 h/).waitFor();
  await page.evaluate(() => document.dispatchEvent(new Event("visibilitychange"))); // as when one comes back to the page

  await tea.getByText(/in (9|10) min/).waitFor();
  await page.getByText("The clock of this device is 2 h behind.").waitFor();
}, { context: { viewport: WIDE } }));

for (const colorScheme of ["light", "dark"]) {
  // P13
  test(`axe-core finds nothing serious in the main views, ${colorScheme}`, withServer(async (server, context) => {
    const session = await fill(server);
    for (const [name, size] of [["wide", WIDE], ["phone", PHONE]]) {
      const page = await openPanel(context, server, session);
      await page.setViewportSize(size);
      await page.reload();
      await bubble(page, 5).locator(".reply").first().waitFor();
      await assertAccessible(page, `conversation ${name}`);
      if (size === PHONE) await page.getByRole("button", { name: /^What is coming/ }).click();
      await page.locator(".coming-item").first().getByRole("button", { name: /Edit|Go to it/ }).first().waitFor();
      await page.getByRole("button", { name: "Edit" }).first().click();
      await page.getByLabel("When").fill("tomorrow at 9");
      await page.locator(".alternatives").waitFor();
      await assertAccessible(page, `drawer ${name}`);
      await page.keyboard.press("Escape");
      if (size === PHONE) {
        await page.keyboard.press("Escape");
        await page.getByRole("button", { name: "Chats and menu" }).click();
        await page.locator(".chat").first().waitFor();
        await assertAccessible(page, "chats phone");
      }
      await page.locator(".person").click();
      await page.locator("dialog[open]").waitFor();
      await assertAccessible(page, `settings ${name}`);
      await page.keyboard.press("Escape");
      await page.keyboard.press("Alt+n");
      await page.locator(".agent").first().waitFor();
      await assertAccessible(page, `new chat ${name}`);
      await page.keyboard.press("Escape");
      await page.keyboard.press("Control+k");
      await page.getByRole("searchbox").fill("lunch");
      await page.locator(".result").first().waitFor();
      await assertAccessible(page, `search ${name}`);
      await page.close();
    }
    const page = await openPanel(context, server);
    await page.goto(`${server.url}/?person=somebody`);
    await page.getByText("Say something to concierge").waitFor();
    await assertAccessible(page, "empty");
    await server.end("SIGKILL");
    await page.waitForSelector(".bar-offline");
    await type(page, "hello?");
    await page.waitForSelector(".pending");
    await assertAccessible(page, "offline");
  }, { context: { colorScheme, reducedMotion: "reduce" } }));
}

/** Presses Tab until the element that has the focus matches. */
async function tabTo(page, selector) {
  for (let presses = 0; presses < 80; presses++) {
    if (await page.evaluate((wanted) => document.activeElement?.matches(wanted), selector)) return;
    await page.keyboard.press("Tab");
  }
  throw new Error(`${selector} cannot be reached with Tab`);
}

// P13
test("everything works with the keyboard alone", withServer(async (server, context) => {
  const session = await fill(server);
  await server.session("other");
  const page = await openPanel(context, server, session);
  await bubble(page, 5).locator(".reply").first().waitFor();

  await tabTo(page, ".composer textarea");
  await page.keyboard.type("line one");
  await page.keyboard.press("Shift+Enter");
  await page.keyboard.type("line two");
  await page.keyboard.press("Enter");
  await bubble(page, 6).waitFor();
  assert.equal((await server.lines(session))[5].text, "line one\nline two");

  await tabTo(page, ".coming-scheduled button");
  await page.keyboard.press("Enter");
  await until("the editor has the focus", () => page.evaluate(() => document.activeElement.tagName === "TEXTAREA" && document.activeElement.closest(".editor")));
  await page.keyboard.press("Tab");
  await page.keyboard.type("in 2 hours");
  await page.locator(".understood").waitFor();
  await page.keyboard.press("Enter");
  await page.locator(".coming-item").getByText("in 2 h").waitFor();

  await page.keyboard.press("Control+k");
  await page.keyboard.type("dinner");
  await page.locator(".result").first().waitFor();
  await tabTo(page, ".result");
  await page.keyboard.press("Enter");
  await page.locator('.highlighted[data-seq="5"]').waitFor();

  await page.keyboard.press("Alt+ArrowDown");
  await page.locator(".chat[aria-current]", { hasText: "other" }).waitFor();
  await page.keyboard.press("Alt+ArrowUp");
  await page.locator(".chat[aria-current]", { hasText: "bot" }).waitFor();

  await page.keyboard.press("Alt+n");
  await tabTo(page, '.agent input');
  await page.keyboard.press("Space");
  await page.keyboard.press("Enter");
  await page.locator("dialog[open]").waitFor({ state: "detached" });
  assert.equal((await server.ok("GET", "/v1/sessions?member=user")).sessions.length, 3);

  await page.locator(".log").focus();
  await page.keyboard.press("?");
  await page.getByRole("heading", { name: "Keyboard shortcuts" }).waitFor();
  await page.keyboard.press("Escape");
  await page.locator("dialog[open]").waitFor({ state: "detached" });
  await page.keyboard.press("Alt+c");
  await page.locator(".drawer").waitFor({ state: "detached" });
}, { context: { viewport: WIDE } }));

// P13
test("Enter while a Chinese word is being composed does not send", withServer(async (server, context) => {
  const session = await server.session();
  const page = await openPanel(context, server, session);
  const composer = page.getByRole("textbox", { name: "Write a message" });
  await composer.focus();
  const session2 = await context.newCDPSession(page);
  await session2.send("Input.imeSetComposition", { text: "he shui", selectionStart: 7, selectionEnd: 7 });
  await composer.dispatchEvent("keydown", { key: "Enter", isComposing: true, bubbles: true, cancelable: true });
  assert.equal((await server.lines(session)).length, 0);
  await session2.send("Input.insertText", { text: "喝水" });
  await page.keyboard.press("Enter");
  await bubble(page, 1).waitFor();

  assert.deepEqual((await server.lines(session)).map((line) => line.text), ["喝水"]);
}));

// P13
test("the interface speaks English and Chinese, by the browser and by choice", withServer(async (server, context) => {
  const page = await openPanel(context, server);
  await page.getByText("和 concierge 说点什么").waitFor();
  assert.equal(await page.evaluate(() => document.documentElement.lang), "zh-CN");
  await page.getByRole("button", { name: "20秒后提醒我喝水" }).click();
  await page.keyboard.press("Enter");
  await page.locator(".coming-item").getByText(/\d+ 秒后/).waitFor();

  await page.locator(".person").click();
  await page.evaluate(() => {
    window.languagesOfEnglish = [];
    new MutationObserver(() => {
      if (document.querySelector("dialog[open] h2")?.textContent === "Settings") {
        window.languagesOfEnglish.push(document.documentElement.lang);
      }
    }).observe(document.body, { childList: true, characterData: true, subtree: true });
  });
  await page.getByRole("radio", { name: "English" }).check();
  await page.getByRole("heading", { name: "Settings" }).waitFor();
  const languages = await page.evaluate(() => window.languagesOfEnglish);
  assert.deepEqual([...new Set(languages)], ["en"], "the page says its language with its words, not a frame later");
  await page.reload();
  await page.getByRole("textbox", { name: "Write a message" }).waitFor();
  await page.locator(".person").click();
  await page.getByRole("radio", { name: "中文" }).check();
  await page.getByRole("heading", { name: "设置" }).waitFor();
}, { context: { locale: "zh-CN", viewport: WIDE } }));

// P13
test("light and dark follow the system, and a choice", withServer(async (server, context) => {
  const page = await openPanel(context, server, await server.session());
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await ground();
  await page.emulateMedia({ colorScheme: "dark" });
  const dark = await ground();
  assert.notEqual(light, dark);
  await page.locator(".person").click();
  await page.getByRole("radio", { name: "Light" }).check();
  assert.equal(await ground(), light);
  await page.reload();
  await online(page);
  assert.equal(await ground(), light);
}));

// P13
test("on a phone the conversation is the page, and chats and what is coming slide over it", withServer(async (server, context) => {
  const session = await fill(server);
  const page = await openPanel(context, server, session);
  await bubble(page, 5).waitFor();
  const composer = await page.getByRole("textbox", { name: "Write a message" }).boundingBox();
  assert.ok(composer.width > 250);
  assert.ok(!(await page.locator(".chats").isVisible()));
  assert.equal(await page.locator(".drawer").count(), 0);

  await page.getByRole("button", { name: "Chats and menu" }).click();
  await page.locator(".chat").first().waitFor();
  await page.keyboard.press("Escape");
  await page.locator(".chats").waitFor({ state: "hidden" });
  await page.getByRole("button", { name: /^What is coming/ }).click();
  await page.locator(".coming-item").first().waitFor();
  await page.keyboard.press("Escape");
  await page.locator(".drawer").waitFor({ state: "detached" });
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth));
}, { context: { viewport: PHONE } }));

// P13
test("a group is opened with several agents, and what is said there shows who says it", withServer(async (server, context) => {
  await server.addAgent("ann-bot");
  await server.addAgent("ben-bot");
  const page = await openPanel(context, server, await server.session());
  await page.getByRole("button", { name: "New chat", exact: true }).click();
  await page.locator(".agent", { hasText: "ann-bot" }).click();
  await page.locator(".agent", { hasText: "ben-bot" }).click();
  await page.getByLabel("Name of the group (optional)").fill("Release");
  await page.getByRole("button", { name: "Open chat" }).click();
  await page.getByRole("heading", { name: "Release", exact: true }).waitFor();
  await type(page, "is anybody here?");
  await page.locator(".notice", { hasText: "no agent was called" }).waitFor();
  await type(page, "@ann-bot hello");
  await bubble(page, 2).waitFor();

  const { sessions } = await server.ok("GET", "/v1/sessions?member=user");
  const group = sessions.find((each) => each.title === "Release");
  assert.equal(group.kind, "group");
  await server.say(group.sessionId, "hi from ann", { from: "ann-bot" });
  await server.say(group.sessionId, "hi from ben", { from: "ben-bot" });
  await bubble(page, 4).waitFor();
  assert.deepEqual(await page.locator(".other .who").allInnerTexts(), ["ann-bot", "ben-bot"]);
}));

// P13
test("code can be copied as it was written", withServer(async (server, context) => {
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  const session = await server.session();
  const page = await openPanel(context, server, session);
  await server.say(session, "Run\n```sh\necho \"<b>\"  # 你好\n```");
  await page.getByRole("button", { name: "Copy" }).click();
  await page.getByText("Copied").waitFor();

  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), "echo \"<b>\"  # 你好");
}));

// P13
test("notifications come only when asked for, for lines of others, while the page is hidden", withServer(async (server, context) => {
  await context.grantPermissions(["notifications"]);
  await context.addInitScript(() => {
    window.__notes = [];
    window.Notification = class {
      static permission = "granted";
      static async requestPermission() { window.__asked = true; return "granted"; }
      constructor(title, options) { window.__notes.push([title, options.body]); }
    };
  });
  const session = await server.session();
  const page = await openPanel(context, server, session);
  const hide = (hidden) => page.evaluate((value) => {
    Object.defineProperty(document, "hidden", { value, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
  }, hidden);
  await hide(true);
  await server.say(session, "not asked for");
  await bubble(page, 1).waitFor();
  assert.deepEqual(await page.evaluate(() => [window.__notes, window.__asked]), [[], undefined]);
  await hide(false);

  await page.locator(".person").click();
  await page.getByLabel("Notify me about new messages").check();
  await until("it was asked", () => page.evaluate(() => window.__asked));
  await page.keyboard.press("Escape");
  await server.say(session, "seen");
  await until("it is seen", () => page.evaluate((id) => JSON.parse(localStorage.getItem("belfry.seen.user"))[id] === 2, session));
  await hide(true);
  await server.say(session, "<b>hello</b>");
  await until("the note", () => page.evaluate(() => window.__notes.length > 0));
  assert.deepEqual(await page.evaluate(() => window.__notes), [["bot", "<b>hello</b>"]]);
  await until("the title counts", async () => (await page.title()) === "(1) Belfry");
  await hide(false);
  await until("it is seen", async () => (await page.title()) === "Belfry");
}));

// P13
test("what was typed and not sent is there again after a reload, by chat", withServer(async (server, context) => {
  const first = await server.session("bot");
  const second = await server.session("other");
  const page = await openPanel(context, server, first);
  const composer = page.getByRole("textbox", { name: "Write a message" });
  await composer.fill("half a thought");
  await page.locator(`[data-session="${second}"]`).click();
  await page.getByRole("heading", { name: "other", exact: true }).waitFor();
  assert.equal(await composer.inputValue(), "");
  await page.locator(`[data-session="${first}"]`).click();
  await page.reload();
  await online(page);
  await until("the draft", async () => (await composer.inputValue()) === "half a thought");
}));

// G9
test("frames that make no sense, and errors in a view, never leave a blank page", withServer(async (server, context) => {
  const session = await server.session();
  let socket;
  await interpose(context, { fromServer: (frame, each) => { socket = each; return frame; } });
  const page = await openPanel(context, server, session);
  const odd = [null, 1, [], {}, { op: "message" }, { op: "message", session, seq: "x" }, { op: "draft", session }, { op: "counts", delayed: "many" },
    { op: "welcome" }, { op: "error" }, { op: "sent", key: 3 }, { op: "pong", now: "soon" }, { op: "activity" }, { op: "coming" }, { op: "caughtUp", session: 4 },
    { op: "message", session, seq: 1, from: {}, text: [], payload: null, createdAt: 7, quickReplies: "x", answer: [], closes: {} }];
  for (const frame of odd) socket.say(frame);
  await bubble(page, 1).waitFor();
  await page.evaluate(() => { localStorage.setItem("belfry.outbox.x", "{{{"); localStorage.setItem("belfry.seen.user", "[1"); localStorage.setItem("belfry.theme", "pink"); });
  await page.reload();
  await online(page);
  await type(page, "still works");
  await page.locator(".own", { hasText: "still works" }).waitFor();
}));

// P13
test("an address of a chat that is not there is said, and the others are there", withServer(async (server, context) => {
  const session = await server.session();
  await server.say(session, "hello");
  const page = await openPanel(context, server, "nosuchchat000");
  await page.getByText("There is no such chat.").waitFor();
  await page.locator(".chat", { hasText: "bot" }).click();
  await bubble(page, 1).waitFor();
  assert.deepEqual(await shownTexts(page), ["hello"]);
}));

// P13
test("without storage the page works, for as long as it is open", withServer(async (server, context) => {
  await context.addInitScript(() => {
    const forbidden = { get() { throw new DOMException("forbidden", "SecurityError"); } };
    Object.defineProperty(window, "localStorage", forbidden);
    Object.defineProperty(window, "sessionStorage", forbidden);
  });
  const session = await server.session();
  const page = await openPanel(context, server, session);
  await type(page, "hello");
  await bubble(page, 1).waitFor();
}));

// P13
test("the script of the first load has at most 60 kB gzipped, and nothing comes from elsewhere", withServer(async (server, context) => {
  const page = await context.newPage();
  page.seen = watch(page, server.url);
  const scripts = [];
  page.on("response", async (response) => {
    if (response.request().resourceType() === "script") scripts.push(response);
  });
  await page.goto(server.url);
  await online(page);
  let size = 0;
  for (const script of scripts) size += gzipSync(await script.body(), { level: 9 }).length;

  assert.ok(scripts.length > 0 && size <= SCRIPT_MAX, `${size} bytes`);
  assert.deepEqual(page.seen.strays, []);
}));
