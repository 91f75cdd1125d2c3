// The lines of a conversation reach the screen once and in order, whatever happens to the connection, the page or the server.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { assertDense, bubble, closeBrowser, composer, interpose, newContext, online, openPanel, shownSeqs, shownTexts, type, until, withServer } from "./support.mjs";

after(closeBrowser);

const MESSAGE_NODES_MAX = 300;

/** Numbers that look like chance and are the same in every run. */
function chances(seed) {
  let state = seed;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return state / 2 ** 31;
  };
}

/** Notes whenever the page shows a number twice or out of order, at any moment. */
async function guard(page) {
  await page.evaluate(() => {
    window.__wrong = [];
    const check = () => {
      const seqs = [...document.querySelectorAll("[data-seq]")].map((each) => Number(each.dataset.seq));
      if (seqs.some((seq, index) => index > 0 && seq !== seqs[index - 1] + 1)) window.__wrong.push(seqs);
    };
    new MutationObserver(check).observe(document.getElementById("app"), { childList: true, subtree: true });
  });
}

async function assertNeverWrong(page) {
  assert.deepEqual(await page.evaluate(() => window.__wrong), []);
}

// G9
test("the server is killed and started again in the middle of a conversation: each number once and in order", withServer(async (server, context) => {
  const session = await server.session();
  const page = await openPanel(context, server, session);
  await guard(page);
  let said = 0;
  for (let round = 0; round < 4; round++) {
    for (let count = 0; count < 5; count++) await server.say(session, `agent ${++said}`);
    await type(page, `typed ${round}`);
    await server.end("SIGKILL");
    await page.waitForSelector(".bar-offline");
    await type(page, `typed while away ${round}`);
    await server.run();
    await online(page);
    await until("everything typed is said", async () => (await server.lines(session)).filter((line) => line.source === "user").length >= 2 * (round + 1));
  }
  const lines = await server.lines(session);
  await bubble(page, lines.at(-1).seq).waitFor();

  assertDense(await shownSeqs(page), lines.length);
  assert.deepEqual(await shownTexts(page), lines.map((line) => line.text));
  await assertNeverWrong(page);
  assert.equal(await page.locator(".pending").count(), 0);
  const typed = lines.filter((line) => line.source === "user").map((line) => line.text);
  assert.equal(new Set(typed).size, 8);
  assert.equal(typed.length, 8);
}));

// G9
test("with sockets that are cut at random, two tabs show each number once and in order, and nothing is said twice", withServer(async (server, context) => {
  const session = await server.session();
  const chance = chances(7);
  const between = await interpose(context, {
    // Frames are lost with the connection, in both directions: the answer to a send that arrived is the worst.
    fromServer: (frame, socket) => {
      if (chance() < 0.06) void socket.cut();
      return frame;
    },
    fromPage: (frame, socket) => {
      if (frame.op === "send" && chance() < 0.3) {
        socket.ask(frame);
        void socket.cut();
        return undefined;
      }
      return frame;
    },
  });
  const pages = [await openPanel(context, server, session), await openPanel(context, server, session)];
  for (const page of pages) await guard(page);

  for (let round = 0; round < 30; round++) {
    await server.say(session, `agent ${round}`);
    if (round % 5 === 0) await type(pages[round % 2], `typed ${round}`);
    if (chance() < 0.1) await between.cutAll();
  }
  await until("all is said", async () => (await server.lines(session)).length >= 36);
  const lines = await server.lines(session);

  assert.equal(lines.length, 36);
  for (const page of pages) {
    await bubble(page, 36).waitFor();
    assertDense(await shownSeqs(page), 36);
    assert.deepEqual(await shownTexts(page), lines.map((line) => line.text));
    await assertNeverWrong(page);
    await until("nothing is left to send", async () => (await page.locator(".pending").count()) === 0);
  }
}));

// G9
test("a frame that comes twice or is missing makes no double and no gap", withServer(async (server, context) => {
  const session = await server.session();
  let asked = 0;
  await interpose(context, {
    fromServer: (frame, socket) => {
      if (frame.op !== "message") return frame;
      if (frame.seq === 3 && asked === 0) return undefined;
      socket.say(frame);
      return frame;
    },
    fromPage: (frame) => {
      if (frame.op === "subscribe" && frame.after === 2) asked++;
      return frame;
    },
  });
  const page = await openPanel(context, server, session);
  await guard(page);

  for (let count = 1; count <= 6; count++) await server.say(session, `line ${count}`);
  await bubble(page, 6).waitFor();

  assert.ok(asked > 0);
  assertDense(await shownSeqs(page), 6);
  await assertNeverWrong(page);
}));

// G9
test("what is typed while the server is away is sent once, in order, when it is back", withServer(async (server, context) => {
  const session = await server.session();
  const page = await openPanel(context, server, session);
  await composer(page).waitFor();
  await server.end("SIGKILL");
  await page.waitForSelector(".bar-offline");
  await page.getByText("Offline. What you type is kept and sent later.").waitFor();

  for (const text of ["one", "two", "three"]) await type(page, text);
  await until("all three wait", async () => (await page.locator(".pending-queued").count()) === 3);
  await server.run();
  await bubble(page, 3).waitFor();
  await online(page);

  assert.deepEqual((await server.lines(session)).map((line) => line.text), ["one", "two", "three"]);
  await until("nothing pends", async () => (await page.locator(".pending").count()) === 0);
}));

// G9
test("a conversation of nothing but what waits can be scrolled, and all of it is sent once", withServer(async (server, context) => {
  const session = await server.session();
  const page = await openPanel(context, server, session);
  await composer(page).waitFor();
  await server.end("SIGKILL");
  await page.waitForSelector(".bar-offline");
  const texts = Array.from({ length: 40 }, (_, index) => `waits ${index}\nand\nwaits`);
  for (const text of texts) await type(page, text);
  for (const place of [0, 300, 0, 1e6, 0]) {
    await page.evaluate((top) => new Promise((done) => {
      document.querySelector(".log").scrollTop = top;
      requestAnimationFrame(() => requestAnimationFrame(done));
    }), place);
  }
  await page.getByRole("button", { name: /Jump to newest/ }).click();
  await server.run();
  await bubble(page, 40).waitFor();

  assert.deepEqual((await server.lines(session)).map((line) => line.text), texts);
}));

// G9
test("what a tab had not sent when it was closed is sent once by another", withServer(async (server, context) => {
  const session = await server.session();
  const page = await openPanel(context, server, session);
  const other = await openPanel(context, server, session);
  for (const each of [page, other]) await composer(each).waitFor();
  await server.end("SIGKILL");
  await page.waitForSelector(".bar-offline");
  await type(page, "left behind");
  await page.waitForSelector(".pending-queued");
  assert.equal(await other.locator(".pending").count(), 0);
  await page.close();

  await server.run();
  await online(other);
  const third = await openPanel(context, server, session);
  await bubble(third, 1).waitFor();
  await bubble(other, 1).waitFor();

  assert.deepEqual((await server.lines(session)).map((line) => line.text), ["left behind"]);
  assert.equal(await third.evaluate(() => Object.keys(localStorage).filter((name) => name.startsWith("belfry.outbox.")).length), 0);
}));

// G9
test("a reload between sending and the answer says nothing twice", withServer(async (server, context) => {
  const session = await server.session();
  let swallow = true;
  await interpose(context, { fromServer: (frame) => (swallow && frame.op === "sent" ? undefined : frame) });
  const page = await openPanel(context, server, session);
  await type(page, "only once");
  await bubble(page, 1).waitFor();
  assert.equal(await page.locator(".pending").count(), 0);
  swallow = false;

  await page.reload();
  await online(page);
  await bubble(page, 1).waitFor();
  await until("the outbox is empty", () => page.evaluate(() => !Object.keys(localStorage).some((name) => name.startsWith("belfry.outbox."))));

  assert.deepEqual((await server.lines(session)).map((line) => line.text), ["only once"]);
  assertDense(await shownSeqs(page), 1);
}));

// G9
test("a send that the server refuses is kept with the reason, can be sent again, or thrown away", withServer(async (server, context) => {
  const session = await server.session();
  let refuse = true;
  await interpose(context, {
    fromPage: (frame, socket) => {
      if (frame.op !== "send" || !refuse) return frame;
      socket.say({ op: "error", key: frame.key, session, error: "disk_full", message: "there is no space left" });
      return undefined;
    },
  });
  const page = await openPanel(context, server, session);
  await type(page, "keep me");
  await type(page, "drop me");
  await page.getByText("Not sent: there is no space left").nth(1).waitFor();
  await page.reload();
  await page.locator(".pending-failed").nth(1).waitFor();
  refuse = false;

  await page.locator(".pending-failed", { hasText: "drop me" }).getByRole("button", { name: "Discard" }).click();
  await page.locator(".pending-failed", { hasText: "keep me" }).getByRole("button", { name: "Retry" }).click();
  await bubble(page, 1).waitFor();

  assert.deepEqual((await server.lines(session)).map((line) => line.text), ["keep me"]);
  await until("nothing pends", async () => (await page.locator(".pending").count()) === 0);
}));

// G9
test("a draft grows in the page, survives a reload in its middle, and its final line takes its place", withServer(async (server, context) => {
  const session = await server.session();
  const page = await openPanel(context, server, session);
  const draft = (text, draftId = "d1") => server.ok("POST", `/v1/sessions/${session}/drafts`, { from: "bot", draftId, text });

  await draft("The answer");
  await page.locator(".draft", { hasText: "The answer" }).waitFor();
  await draft("The answer **is**");
  await page.locator(".draft strong", { hasText: "is" }).waitFor();
  await page.reload();
  await online(page);
  await draft("The answer **is** 42");
  await page.locator(".draft", { hasText: "The answer is 42" }).waitFor();
  await guard(page);
  await server.say(session, { text: "The answer **is** 42.", draftId: "d1" });
  await bubble(page, 1).waitFor();

  await until("the draft is gone", async () => (await page.locator(".draft").count()) === 0);
  assert.deepEqual(await shownTexts(page), ["The answer is 42."]);
  assert.equal(await page.getByText("The answer is 42").count(), 1);

  await draft("given up", "d2");
  await page.locator(".draft").waitFor();
  await server.ok("POST", `/v1/sessions/${session}/drafts`, { from: "bot", draftId: "d2", done: true, text: "" });
  await until("the draft is gone", async () => (await page.locator(".draft").count()) === 0);
}));

// G18
test("a draft is read four times a second at most however often it grows, and what is said in its place stands there at once", withServer(async (server, context) => {
  const session = await server.session();
  const page = await openPanel(context, server, session);
  await server.ok("POST", `/v1/sessions/${session}/drafts`, { from: "bot", draftId: "d", text: "**0**" });
  await page.locator(".draft strong", { hasText: "0" }).waitFor();
  await page.evaluate(() => {
    window.shownAt = [];
    new MutationObserver(() => {
      const text = document.querySelector(".draft strong")?.textContent;
      if (text !== undefined && text !== window.shownAt.at(-1)?.text) window.shownAt.push({ text, at: performance.now() });
    }).observe(document.querySelector(".log"), { subtree: true, childList: true, characterData: true });
  });

  for (let count = 1; count <= 300; count++) {
    await server.ok("POST", `/v1/sessions/${session}/drafts`, { from: "bot", draftId: "d", text: `**${count}**` });
  }
  await page.locator(".draft strong", { hasText: "300" }).waitFor();
  const shown = await page.evaluate(() => window.shownAt);
  assert.equal(shown.at(-1).text, "300");
  assert.ok(shown.length < 300, `${shown.length} of 300 were shown`);
  // A timer may be a little early by the page's clock, which is rounded.
  for (const [place, { at }] of shown.entries()) assert.ok(place === 0 || at - shown[place - 1].at > 240, JSON.stringify(shown));

  await server.ok("POST", `/v1/sessions/${session}/drafts`, { from: "bot", draftId: "d", text: "**301**" });
  await server.say(session, { text: "**done**", draftId: "d" });
  await bubble(page, 1).locator("strong", { hasText: "done" }).waitFor();
  await until("the draft is gone", async () => (await page.locator(".draft").count()) === 0);
}));

// G18
test("of messages that were made to keep the page busy nothing is lost", withServer(async (server, context) => {
  const session = await server.session();
  const page = await openPanel(context, server, session);
  const texts = ["*a **b", "[a](", "> - ", "`a``", "|a|b|\n|-|-|\n", "*_"].map((piece) => piece.repeat(Math.floor(18_000 / piece.length)));
  for (const [place, text] of texts.entries()) {
    await server.say(session, text);
    await bubble(page, place + 1).waitFor();
  }
  const letters = (text) => text.replaceAll(/[^\p{L}]/gu, "");
  for (const [place, text] of texts.entries()) {
    assert.equal(letters(await bubble(page, place + 1).locator(".bubble").innerText()).length, letters(text).length);
  }
}));

// A3
test("an agent that is writing can be told to stop, once and by keyboard too", withServer(async (server, context) => {
  const session = await server.session();
  const asked = [];
  await interpose(context, {
    fromPage: (frame) => {
      if (frame.op === "stop") asked.push(frame);
      return frame;
    },
  });
  const page = await openPanel(context, server, session);
  const draft = (fields) => server.ok("POST", `/v1/sessions/${session}/drafts`, { from: "bot", draftId: "d1", ...fields });
  assert.equal(await page.getByRole("button", { name: "Stop" }).count(), 0);
  await draft({ text: "Once upon" });
  await page.getByRole("button", { name: "Stop" }).focus();
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Stopping…", disabled: true }).waitFor();
  await draft({ text: "Once upon a time" });
  await page.locator(".draft", { hasText: "a time" }).waitFor();
  await page.getByRole("button", { name: "Stopping…", disabled: true }).waitFor();
  await until("it was asked", () => asked.length === 1);
  await draft({ done: true });
  await until("the draft is gone", async () => (await page.locator(".draft").count()) === 0);

  assert.deepEqual(asked, [{ op: "stop", session, agent: "bot" }]);
  assert.equal(await page.locator(".notice").count(), 0);
}));

async function scrollUpTo(page, seq) {
  await until(`line ${seq} by scrolling`, async () => {
    if ((await bubble(page, seq).count()) > 0) return true;
    await page.evaluate(() => { document.querySelector(".log").scrollTop = 0; });
    return false;
  });
}

function nodes(page) {
  return page.evaluate(() => document.querySelectorAll(".message").length);
}

/** The number of the first line in view and where it stands. */
function firstInView(page) {
  return page.evaluate(() => {
    const log = document.querySelector(".log");
    const top = log.getBoundingClientRect().top;
    const first = [...log.querySelectorAll("[data-seq]")].find((each) => each.getBoundingClientRect().bottom > top + 60);
    return { seq: Number(first.dataset.seq), top: Math.round(first.getBoundingClientRect().top) };
  });
}

// G9
test("of 10,000 lines at most 300 are in the page, wherever one scrolls, and all can be reached", withServer(async (server, context) => {
  const session = await server.session();
  await server.batch(session, Array.from({ length: 10_000 }, (_, index) => `line **${index + 1}** ${"words ".repeat(index % 30)}`));
  const page = await openPanel(context, server, session);
  await bubble(page, 10_000).waitFor();
  await guard(page);
  await page.evaluate(() => {
    window.__most = 0;
    new MutationObserver(() => { window.__most = Math.max(window.__most, document.querySelectorAll(".message").length); })
      .observe(document.getElementById("app"), { childList: true, subtree: true });
  });
  assert.ok((await nodes(page)) <= MESSAGE_NODES_MAX);

  await scrollUpTo(page, 9000);
  const before = await firstInView(page);
  for (let count = 1; count <= 5; count++) await server.say(session, `new ${count}`);
  await page.getByText("5 new").waitFor();
  assert.deepEqual(await firstInView(page), before, "what one reads stays where it is");
  await page.getByRole("button", { name: /Jump to newest/ }).click();
  await bubble(page, 10_005).waitFor();
  await until("the end is in view", () => page.evaluate(() => {
    const log = document.querySelector(".log");
    return log.scrollHeight - log.scrollTop - log.clientHeight < 4;
  }));

  await page.keyboard.press("Control+k");
  await page.getByRole("searchbox").fill("line **17**");
  await page.locator(".result").first().click();
  await bubble(page, 17).waitFor();
  await page.locator('.highlighted[data-seq="17"]').waitFor();
  await scrollUpTo(page, 1);
  await page.getByText("This is where the conversation begins.").waitFor();

  assert.ok((await page.evaluate(() => window.__most)) <= MESSAGE_NODES_MAX);
  await assertNeverWrong(page);
}));

// G9
test("what one looks at does not move when older lines come in above it", withServer(async (server, context) => {
  const session = await server.session();
  await server.batch(session, Array.from({ length: 600 }, (_, index) => `line ${index + 1}\n`.repeat(1 + (index % 7))));
  const page = await openPanel(context, server, session);
  await bubble(page, 600).waitFor();
  const log = page.locator(".log");
  await log.hover();
  let lowest = 600;
  while (lowest > 1) {
    const before = await firstInView(page);
    await page.mouse.wheel(0, -400);
    await until("the scroll", async () => {
      const now = await firstInView(page);
      return now.seq < before.seq || now.top !== before.top || now.seq === 1;
    });
    const now = await firstInView(page);
    assert.ok(before.seq - now.seq < 40, `a step of the wheel went from ${before.seq} to ${now.seq}`);
    lowest = (await shownSeqs(page))[0];
  }
  assert.ok((await nodes(page)) <= MESSAGE_NODES_MAX);
}));

// G9
test("one can scroll away while a draft is growing, and is not pulled back", withServer(async (server, context) => {
  const session = await server.session();
  await server.batch(session, Array.from({ length: 60 }, (_, index) => `line ${index + 1}\nmore\nmore`));
  const page = await openPanel(context, server, session);
  await bubble(page, 60).waitFor();
  const grow = async (size) => server.ok("POST", `/v1/sessions/${session}/drafts`, { from: "bot", draftId: "d", text: "word\n".repeat(size) });
  await grow(1);
  await page.locator(".draft").waitFor();

  // The scroll and the next draft meet before the browser has told of the scroll.
  const growing = Promise.all(Array.from({ length: 20 }, (_, index) => grow(index + 2)));
  await page.evaluate(() => { document.querySelector(".log").scrollTop -= 400; });
  await growing;
  await page.getByRole("button", { name: /Jump to newest/ }).click();
  await page.locator(".draft", { hasText: "word" }).waitFor();
  await until("the end is in view", () => page.evaluate(() => {
    const log = document.querySelector(".log");
    return log.scrollHeight - log.scrollTop - log.clientHeight < 4;
  }));
}));

// G9
test("the page stays at the bottom while it is there, and takes no focus when lines come", withServer(async (server, context) => {
  const session = await server.session();
  const page = await openPanel(context, server, session);
  await page.getByRole("textbox", { name: "Write a message" }).focus();
  for (let count = 1; count <= 60; count++) await server.say(session, `line ${count}\nmore\nmore`);
  await bubble(page, 60).waitFor();

  assert.ok(await page.evaluate(() => {
    const log = document.querySelector(".log");
    return log.scrollHeight - log.scrollTop - log.clientHeight < 4;
  }));
  assert.equal(await page.evaluate(() => document.activeElement.tagName), "TEXTAREA");
  assert.equal(await page.locator(".log").getAttribute("role"), "log");
  await until("the log is announced", async () => (await page.locator(".log").getAttribute("aria-live")) === "polite");
}));

// P13
test("chats that are not open show what came, and how much is unread, on this device", withServer(async (server, context) => {
  const first = await server.session("bot");
  const second = await server.session("other");
  await server.say(first, "hello");
  const page = await openPanel(context, server, first);
  await bubble(page, 1).waitFor();

  await server.say(second, "psst", { from: "other" });
  await server.say(second, "psst again", { from: "other" });
  const chat = page.locator(`[data-session="${second}"]`);
  await chat.getByLabel("2 unread").waitFor();
  await chat.getByText("psst again").waitFor();
  await until("the title counts", async () => (await page.title()) === "(2) Belfry");
  assert.equal(await page.locator(".chat").first().getAttribute("data-session"), second);
  await chat.click();
  await bubble(page, 2).waitFor();
  await until("nothing is unread", async () => (await page.title()) === "Belfry");
  await page.reload();
  await online(page);
  await bubble(page, 2).waitFor();
  await until("no badge", async () => (await page.locator(".chat .badge").count()) === 0);
  assert.deepEqual(await shownTexts(page), ["psst", "psst again"]);
}));

// P13
test("a chat that begins while the page is open appears in the list", withServer(async (server, context) => {
  const page = await openPanel(context, server, await server.session());
  await server.addAgent("newcomer");

  await server.ok("POST", "/v1/messages", { to: "user", from: "newcomer", payload: { text: "I am new here" } });

  await page.locator(".chat", { hasText: "newcomer" }).getByText("I am new here").waitFor();
}));

// G9
test("a stop of the server is said calmly, and the page comes back by itself", withServer(async (server, context) => {
  const session = await server.session();
  const page = await openPanel(context, server, session);
  await server.end("SIGTERM");
  await page.waitForSelector(".bar-stopping, .bar-offline");
  await server.run();
  await online(page);
  await server.say(session, "back");
  await bubble(page, 1).waitFor();
}));

// P13
test("a message of 1 MB is shown by its beginning, and the page stays usable", withServer(async (server, context) => {
  const session = await server.session();
  const page = await openPanel(context, server, session);
  await server.say(session, `${"[a](b) *c* <i>d</i> ".repeat(50_000)}THE END`);
  await bubble(page, 1).waitFor();

  await page.getByText("This message is long (1.0 MB)").waitFor();
  await page.getByRole("button", { name: "Show all (1.0 MB)" }).click();
  await page.getByText("THE END").waitFor();
  await page.getByRole("button", { name: "Show less" }).click();
  await type(page, "still here");
  await bubble(page, 2).waitFor();
}));

// P13
test("a text over the limit is told before it is sent, and is not sent", withServer(async (server, context) => {
  const session = await server.session();
  const page = await openPanel(context, server, session);
  await type(page, "字".repeat(33_334));

  await page.getByText("Too long: 100,002 of at most 100,000 bytes.").waitFor();
  assert.ok(await page.getByRole("button", { name: "Send" }).isDisabled());
  await type(page, "字".repeat(33_333));
  await bubble(page, 1).waitFor();
  assert.equal((await server.lines(session)).length, 1);
}));

// G9
test("a second context of the same person sees the same lines", withServer(async (server, context) => {
  const session = await server.session();
  const page = await openPanel(context, server, session);
  const elsewhere = await newContext();
  const other = await openPanel(elsewhere, server, session);
  await type(page, "from here");
  await type(other, "from there");
  for (const each of [page, other]) {
    await bubble(each, 2).waitFor();
    assertDense(await shownSeqs(each), 2);
  }
  await elsewhere.close();
}));
