// What the tests share: one `belfry serve` for a test, a Chromium, and waiting without sleeping.
//
// The program is $BELFRY, or build/release/belfry. With $BELFRY_SERVER_PANEL it serves the panel from that folder.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { request } from "node:http";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

export const ROOT = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
export const BELFRY = process.env.BELFRY ?? join(ROOT, "build/release/belfry");
export const PATIENCE = 20_000; // until a test gives up waiting

const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";
const CHROMIUM_FLAGS = [
  "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync",
];

/** Waits until the function returns something that is true, and returns that; asks again and again, since nobody tells. */
export async function until(what, ask) {
  const deadline = performance.now() + PATIENCE;
  for (;;) {
    const found = await ask();
    if (found) return found;
    if (performance.now() > deadline) throw new Error(`waited in vain: ${what}`);
    await new Promise((done) => setTimeout(done, 15));
  }
}

const running = new Set();
process.on("exit", () => running.forEach((child) => child.kill("SIGKILL"))); // a test that dies leaves no server behind

/** One `belfry serve` with a data directory, which it can be ended and started again with. */
export class Server {
  static async start(flags = []) {
    const server = new Server();
    server.data = await mkdtemp(join(tmpdir(), "belfry-browser-"));
    server.flags = flags;
    server.listen = "127.0.0.1:0";
    await server.run();
    return server;
  }

  async run() {
    const environment = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("BELFRY") || name === "BELFRY_SERVER_PANEL"));
    this.process = spawn(BELFRY, ["serve", "--listen", this.listen, "--data", this.data, ...this.flags], { env: environment });
    const child = this.process;
    running.add(child);
    this.ended = new Promise((done) => child.once("exit", done)).then(() => running.delete(child));
    this.log = "";
    let missing;
    child.once("error", (error) => { missing = error; });
    this.process.stderr.on("data", (piece) => { this.log = (this.log + piece).slice(-20_000); });
    let said = "";
    this.process.stdout.on("data", (piece) => { said += piece; });
    const address = await until("the line with the address", () => {
      if (missing) throw new Error(`${BELFRY} cannot be started (set BELFRY): ${missing.message}`);
      if (this.process.exitCode !== null) throw new Error(`the server ended: ${this.log}`);
      return /http:\/\/([^\s/]+:\d+)/.exec(said)?.[1];
    });
    this.listen = address; // the same again after a restart
    this.url = `http://${address}`;
  }

  /** Ends it and waits until it has ended. */
  async end(signal = "SIGTERM") {
    if (this.process.exitCode === null && this.process.signalCode === null) this.process.kill(signal);
    await this.ended;
  }

  async restart(signal) {
    await this.end(signal);
    await this.run();
  }

  async remove() {
    await this.end("SIGKILL");
    await rm(this.data, { recursive: true, force: true });
  }

  /** The status and the parsed body. */
  call(method, path, body, headers = {}) {
    return new Promise((done, fail) => {
      const text = body === undefined ? undefined : typeof body === "string" ? body : JSON.stringify(body);
      const given = text === undefined ? {} : { "content-type": "application/json", "content-length": Buffer.byteLength(text) };
      const asked = request(this.url + path, { method, headers: { ...given, ...headers } }, (answer) => {
        const pieces = [];
        answer.on("data", (piece) => pieces.push(piece));
        answer.on("end", () => {
          const raw = Buffer.concat(pieces).toString();
          let parsed;
          try { parsed = JSON.parse(raw); } catch { parsed = raw; }
          done({ status: answer.statusCode, body: parsed, headers: answer.headers });
        });
      });
      asked.on("error", fail);
      asked.end(text);
    });
  }

  async ok(method, path, body, headers) {
    const answer = await this.call(method, path, body, headers);
    assert.ok(answer.status < 300, `${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
    return answer.body;
  }

  async addAgent(id = "bot") {
    await this.ok("POST", "/v1/agents", { id });
    return id;
  }

  /** A private session of the user with a fresh agent that says only what a test says in its name. */
  async session(agent = "bot", more = {}) {
    await this.call("POST", "/v1/agents", { id: agent });
    return (await this.ok("POST", "/v1/sessions", { kind: "private", user: "user", agent, ...more })).sessionId;
  }

  /** The agent says something, at once unless a delay is given. */
  say(session, payload, more = {}) {
    const whole = typeof payload === "string" ? { text: payload } : payload;
    return this.ok("POST", "/v1/messages", { to: "user", from: "bot", sessionId: session, payload: whole, ...more });
  }

  /** Begins a run in a session, of these steps: [aiName, draftArgs, dependsOn]. */
  async startRun(session, steps, more = {}, agent = "bot") {
    const plan = { steps: steps.map(([aiName, draftArgs = {}, dependsOn = []]) => ({ aiName, draftArgs, dependsOn })), ...more };
    return (await this.ok("POST", "/v1/runs", { plan, context: { sessionId: session, agentId: agent } })).runId;
  }

  async lines(session) {
    const all = [];
    for (;;) {
      const { messages } = await this.ok("GET", `/v1/sessions/${session}/messages?after=${all.at(-1)?.seq ?? 0}&limit=500`);
      if (messages.length === 0) return all;
      all.push(...messages);
    }
  }

  /** Many messages at once, the fast way in. */
  async batch(session, texts, from = "bot") {
    const lines = texts.map((text) => JSON.stringify({ to: "user", from, sessionId: session, payload: { text } }));
    await this.ok("POST", "/v1/messages:batch", lines.join("\n"), { "content-type": "application/x-ndjson" });
    await until("all lines said", async () => (await this.ok("GET", `/v1/sessions/${session}`)).lastSeq >= texts.length);
  }
}

/**
 * A folder of plugins, to be given to a server as `--plugins`: { name: "the lines of a Python handler" }, which has `args`,
 * `out` (where it may leave files), and `say` for what it writes. All of them take a schedule.
 */
export async function pluginFolder(handlers, more = {}) {
  const folder = await mkdtemp(join(tmpdir(), "belfry-plugins-"));
  for (const [name, lines] of Object.entries(handlers)) {
    await mkdir(join(folder, name));
    const config = { name, description: `${name}, for a test`, schedule: true, inputSchema: { type: "object", properties: { text: { type: "string" } } }, ...more[name] };
    await writeFile(join(folder, name, "config.json"), JSON.stringify(config));
    await writeFile(join(folder, name, "handler"), `#!/usr/bin/env python3
import json, os, struct, sys, time, zlib
args = json.loads(sys.stdin.readline())["args"]
out = os.environ.get("BELFRY_OUTPUT_DIR", "")
def say(line):
    print(json.dumps(line), flush=True)
${lines}
`);
    await chmod(join(folder, name, "handler"), 0o755);
  }
  return folder;
}

let browser;

/** One Chromium for all tests of a file; every test has contexts, and so storages, of its own. */
export async function openBrowser() {
  browser ??= await chromium.launch({ executablePath: CHROMIUM, args: CHROMIUM_FLAGS });
  return browser;
}

export async function closeBrowser() {
  await browser?.close();
  browser = undefined;
}

export async function newContext(options = {}) {
  const context = await (await openBrowser()).newContext({ viewport: { width: 1280, height: 800 }, locale: "en-GB", timezoneId: "Asia/Shanghai", ...options });
  context.setDefaultTimeout(PATIENCE);
  return context;
}

/** What must not happen in any page: errors, requests that leave the origin, dialogs, scripts of others. */
export function watch(page, origin) {
  const seen = { errors: [], strays: [], dialogs: [] };
  page.on("pageerror", (error) => seen.errors.push(String(error)));
  page.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(origin) && !url.startsWith("data:") && !url.startsWith("blob:")) seen.strays.push(url);
  });
  page.on("dialog", (dialog) => {
    seen.dialogs.push(dialog.message());
    void dialog.dismiss();
  });
  return seen;
}

/** Opens the panel and waits until it is connected. */
export async function openPanel(context, server, session, query = "") {
  const page = await context.newPage();
  page.seen = watch(page, server.url);
  await page.goto(`${server.url}/${query}${session ? `#${session}` : ""}`);
  await online(page);
  return page;
}

export async function online(page) {
  await page.waitForFunction(() => document.querySelector(".app") && !document.querySelector(".bar-connecting, .bar-offline, .bar-stopping"));
}

/** The numbers that are shown, from top to bottom. */
export function shownSeqs(page) {
  return page.$$eval("[data-seq]", (all) => all.map((each) => Number(each.dataset.seq)));
}

export function shownTexts(page) {
  return page.$$eval("[data-seq] .bubble", (all) => all.map((each) => each.innerText.trim()));
}

/** Each number once and in order, and all of them if `last` is given. */
export function assertDense(seqs, last) {
  seqs.forEach((seq, index) => index > 0 && assert.equal(seq, seqs[index - 1] + 1, `in order and without gaps: ${seqs}`));
  if (last !== undefined) assert.equal(seqs.at(-1), last);
}

export function bubble(page, seq) {
  return page.locator(`[data-seq="${seq}"]`);
}

/** Where one types; there once the conversation is. */
export function composer(page) {
  return page.getByRole("textbox", { name: /Write a message|写一条消息/ });
}

export async function type(page, text) {
  await composer(page).fill(text);
  await page.keyboard.press("Enter");
}

/**
 * Stands between the page and the server's socket. `fromServer` and `fromPage` get each frame, parsed, and return what goes
 * on: the frame, another one, or nothing. The sockets that are open can be cut.
 */
export async function interpose(target, { fromServer = (frame) => frame, fromPage = (frame) => frame } = {}) {
  const open = new Set();
  await target.routeWebSocket(/\/v1\/ws$/, (page) => {
    const server = page.connectToServer();
    const socket = {
      say: (frame) => page.send(JSON.stringify(frame)),
      ask: (frame) => server.send(JSON.stringify(frame)),
      cut: async () => {
        open.delete(socket);
        await Promise.allSettled([page.close({ code: 4000 }), server.close({ code: 4000 })]);
      },
    };
    open.add(socket);
    page.onClose(() => { open.delete(socket); void server.close(); });
    server.onClose((code, reason) => { open.delete(socket); void page.close({ code, reason }); });
    page.onMessage((text) => {
      const frame = fromPage(JSON.parse(text), socket);
      if (frame) server.send(JSON.stringify(frame));
    });
    server.onMessage((text) => {
      const frame = fromServer(JSON.parse(text), socket);
      if (frame) page.send(JSON.stringify(frame));
    });
  });
  return { open, cutAll: () => Promise.all([...open].map((socket) => socket.cut())) };
}

/** Fails for what axe-core calls serious or critical. */
export async function assertAccessible(page, where) {
  await page.evaluate(() => Promise.all(document.getAnimations().filter((each) => each.effect?.getTiming().iterations !== Infinity).map((each) => each.finished.catch(() => undefined))));
  await page.evaluate(await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8"));
  const { violations } = await page.evaluate(() => window.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }));
  const bad = violations.filter((each) => each.impact === "serious" || each.impact === "critical");
  assert.deepEqual(bad.map((each) => `${where}: ${each.id} ${each.nodes.map((node) => `${node.target} ${node.failureSummary}`).join("; ")}`), []);
}

/** A test with a server and a context of its own, which are gone when it ends; the page must not have had an error. */
export function withServer(work, { flags = [], context: options = {} } = {}) {
  return async () => {
    const server = await Server.start(flags);
    const context = await newContext(options);
    try {
      await work(server, context);
      for (const page of context.pages()) {
        assert.deepEqual(page.seen ?? { errors: [], strays: [], dialogs: [] }, { errors: [], strays: [], dialogs: [] });
      }
    } finally {
      await context.close();
      await server.remove();
    }
  };
}
