// Brings store, socket and HTTP together: what the server says goes into the store, what the person does goes out.
import { Api, type Outcome, type Page, type Reading } from "./api.ts";
import { Announcer } from "./announcer.ts";
import { ComingList } from "./coming_list.ts";
import { Files } from "./files.ts";
import { firstSeq, lastSeq, runAround } from "./log.ts";
import * as outbox from "./outbox.ts";
import { Postman } from "./postman.ts";
import { RunList } from "./run_list.ts";
import { device, tab } from "./storage.ts";
import { Socket } from "./socket.ts";
import { logOf, sessionsInOrder } from "./state.ts";
import { Store } from "./store.ts";
import { randomKey } from "./tabs.ts";
import type { ClientFrame, Line, Millis, Phase, ServerFrame, Session } from "./types.ts";

const HISTORY_PAGE = 100;
const AROUND = 50;
const PAGES_MAX = 20; // pages read on in one go to close a hole
const DRAFT_SILENCE_MAX = 5 * 60_000; // as the server has it, which says so itself if it can
const DELAY_MAX = 3000; // of a frame of a server that is well
const FIRST_AGENT = "concierge";

export class Panel {
  readonly store: Store;
  readonly api: Api;
  readonly coming: ComingList;
  readonly runs: RunList;
  readonly files: Files;
  private readonly socket: Socket;
  private readonly postman: Postman;
  private readonly announcer: Announcer;
  private readonly busy = new Set<string>();
  private pingedAt: Millis | undefined;
  private roundTrip = Number.POSITIVE_INFINITY;

  constructor(person: string) {
    this.store = new Store(person);
    this.api = new Api(() => this.onPhase("unauthorized"));
    this.api.token = tab.get("token") ?? device.get("token") ?? undefined;
    this.socket = new Socket({
      hello: () => this.hello(),
      onPhase: (phase) => this.onPhase(phase),
      onFrame: (frame) => this.onFrame(frame),
    });
    this.postman = new Postman(this.store, this.socket);
    this.coming = new ComingList(this.store, this.api, () => this.now());
    this.runs = new RunList(this.store, this.api);
    this.files = new Files(this.api);
    this.announcer = new Announcer(this.store);
  }

  /** By the server's clock, whatever the browser's says. */
  now(): Millis {
    return Date.now() + this.store.state.offset;
  }

  start(): void {
    this.announcer.restoreSeen();
    void this.postman.start();
    this.socket.start();
    void this.loadSessions();
    addEventListener("hashchange", () => this.openFromAddress());
    setInterval(() => this.dropOldDrafts(), DRAFT_SILENCE_MAX / 4);
  }

  // -- the connection --

  private hello(): ClientFrame {
    const { person, current } = this.store.state;
    const after = current === undefined ? undefined : logOf(this.store.state, current).live;
    const sessions = current === undefined || after === undefined ? [] : [{ id: current, after }];
    return { op: "hello", person, sessions, ...(this.api.token ? { token: this.api.token } : {}) };
  }

  private onPhase(phase: Phase): void {
    this.store.dispatch({ type: "phase", phase });
    if (phase === "unauthorized") this.socket.stop();
  }

  tryNow(): void {
    this.socket.reconnectNow();
  }

  private onFrame(frame: ServerFrame): void {
    const heardAt = Date.now();
    if (frame.op === "message" && this.isGap(frame.session, frame.line)) return this.askAgain(frame.session);
    const isNew = frame.op === "message" && frame.line.seq > (logOf(this.store.state, frame.session).live ?? 0);
    this.store.dispatch({ type: "frame", frame, heardAt });
    switch (frame.op) {
      case "welcome": return this.onWelcome(frame.now, heardAt);
      case "pong": return this.onClock(frame.now, heardAt);
      case "message": return isNew ? this.announcer.said(frame.session, frame.line.from, frame.line.text) : undefined;
      case "activity": return this.onActivity(frame);
      case "caughtUp": return this.onCaughtUp(frame.session);
      case "coming": case "run": return this.coming.changed(frame.session);
      case "sent": return this.onAnswer(frame.warnings);
      case "error": return this.onAnswer(frame.key === undefined ? [frame.message] : []);
      default: return undefined;
    }
  }

  /** Only from here on is it sure that no change of a run, or of what is coming, is missed. */
  private onCaughtUp(session: string): void {
    this.runs.changed(session);
    this.coming.changed(session);
  }

  /** What belongs to no entry of the outbox has no other place to be said. */
  private onAnswer(remarks: readonly string[]): void {
    for (const text of remarks) this.store.dispatch({ type: "notice", text, calm: true });
    this.postman.settled();
  }

  private isGap(session: string, line: Line): boolean {
    return line.seq > (logOf(this.store.state, session).live ?? 0) + 1;
  }

  private askAgain(session: string): void {
    const { current } = this.store.state;
    const after = logOf(this.store.state, session).live;
    if (session === current && after !== undefined) this.socket.send({ op: "subscribe", session, after });
  }

  private onWelcome(now: string, heardAt: Millis): void {
    this.roundTrip = Number.POSITIVE_INFINITY;
    this.setOffset(now, heardAt, 0);
    this.pingedAt = Date.now();
    this.socket.ping();
    this.postman.flush();
    // What happened in other chats while the connection was away comes only with the list.
    void this.loadSessions();
    this.coming.changed(this.store.state.current);
  }

  private onClock(now: string, heardAt: Millis): void {
    if (this.pingedAt === undefined) return this.correctClock(now, heardAt);
    const roundTrip = heardAt - this.pingedAt;
    this.pingedAt = undefined;
    if (roundTrip >= 0 && roundTrip <= this.roundTrip) this.setOffset(now, heardAt, roundTrip / 2);
    this.roundTrip = roundTrip;
  }

  /** Somebody may set the browser's clock while the page is open: what no delay explains is another offset. */
  private correctClock(now: string, heardAt: Millis): void {
    if (Math.abs(Date.parse(now) - heardAt - this.store.state.offset) > DELAY_MAX) this.setOffset(now, heardAt, 0);
  }

  private setOffset(now: string, heardAt: Millis, age: Millis): void {
    this.store.dispatch({ type: "offset", offset: Date.parse(now) + age - heardAt });
  }

  private onActivity(frame: ServerFrame & { op: "activity" }): void {
    if (!this.store.state.sessions.has(frame.session)) void this.loadSession(frame.session);
    this.announcer.said(frame.session, frame.from, frame.text);
  }

  private dropOldDrafts(): void {
    if (this.store.state.drafts.length === 0) return;
    this.store.dispatch({ type: "draftsBefore", heardAt: Date.now() - DRAFT_SILENCE_MAX });
  }

  // -- chats --

  async loadSessions(): Promise<void> {
    if (this.busy.has("sessions")) return;
    this.busy.add("sessions");
    const outcome = await this.api.sessions(this.store.state.person);
    this.busy.delete("sessions");
    if (!outcome.ok) return this.store.dispatch({ type: "sessionsFailed", failure: outcome.failure });
    this.announcer.firstSight(outcome.value);
    this.store.dispatch({ type: "sessions", sessions: outcome.value });
    if (this.store.state.current === undefined) await this.openFirst();
    else this.openFromAddress();
  }

  private async loadSession(id: string): Promise<void> {
    const outcome = await this.api.session(id);
    if (!outcome.ok) return;
    this.store.dispatch({ type: "session", session: outcome.value });
    await this.loadPreview(outcome.value);
  }

  private async loadPreview(session: Session): Promise<void> {
    if (session.lastSeq === 0) return;
    const outcome = await this.api.messages(session.id, { before: session.lastSeq + 1, limit: 1 });
    const line = outcome.ok ? outcome.value.lines[0] : undefined;
    if (line) this.store.dispatch({ type: "preview", session: session.id, line });
  }

  private addressed(): string | undefined {
    const id = location.hash.slice(1);
    return /^[a-z0-9]{1,64}$/.test(id) ? id : undefined;
  }

  private openFromAddress(): void {
    const id = this.addressed();
    if (id !== undefined && id !== this.store.state.current) void this.open(id);
    else if (id !== undefined) void this.loadNewest(id);
  }

  private async openFirst(): Promise<void> {
    const { state } = this.store;
    const last = device.get(`last.${state.person}`);
    const known = last !== null && state.sessions.has(last) ? last : undefined;
    const id = this.addressed() ?? known ?? sessionsInOrder(state)[0]?.id;
    if (id !== undefined) return this.open(id);
    const agents = await this.loadAgents();
    if (agents.some((agent) => agent.id === FIRST_AGENT)) await this.welcome();
  }

  /** The first visit: a chat with the agent that is always there. Tabs that open at the same moment get the same one. */
  private async welcome(): Promise<void> {
    const { person } = this.store.state;
    const body = { kind: "private", user: person, agent: FIRST_AGENT, ...timezone() };
    const first = await this.api.openSession({ ...body, key: `panel-first-${person}` });
    const outcome = first.ok ? first : await this.api.openSession({ ...body, key: randomKey() });
    if (outcome.ok) await this.opened(outcome.value);
  }

  private async opened(session: Session): Promise<void> {
    this.store.dispatch({ type: "session", session });
    await this.open(session.id);
  }

  async openNew(agents: readonly string[], title: string): Promise<string | undefined> {
    const { person } = this.store.state;
    const whom = agents.length === 1 && title === "" ? { kind: "private", agent: agents[0] } : { kind: "group", agents };
    const named = title === "" ? {} : { title };
    const outcome = await this.api.openSession({ ...whom, users: [person], ...named, ...timezone(), key: randomKey() });
    if (!outcome.ok) return outcome.failure.message;
    await this.opened(outcome.value);
    return undefined;
  }

  async open(id: string): Promise<void> {
    const before = this.store.state.current;
    if (before !== undefined && before !== id) this.socket.send({ op: "unsubscribe", session: before });
    if (before !== id) this.store.dispatch({ type: "current", session: id });
    device.set(`last.${this.store.state.person}`, id);
    if (this.addressed() !== id) history.replaceState(null, "", `#${id}`);
    this.coming.changed(id);
    if (!this.store.state.sessions.has(id)) await this.loadSession(id);
    if (logOf(this.store.state, id).live === undefined) await this.loadNewest(id);
    else this.socket.send({ op: "subscribe", session: id, after: logOf(this.store.state, id).live ?? 0 });
  }

  openNeighbour(step: 1 | -1): void {
    const ids = sessionsInOrder(this.store.state).map((session) => session.id);
    const place = ids.indexOf(this.store.state.current ?? "");
    const next = ids[place + step];
    if (next !== undefined) void this.open(next);
  }

  // -- lines --

  private async loadNewest(id: string): Promise<void> {
    const session = this.store.state.sessions.get(id);
    if (logOf(this.store.state, id).live !== undefined || this.busy.has(id)) return;
    this.busy.add(id);
    this.store.dispatch({ type: "loading", session: id, loading: "loading" });
    const before = (session?.lastSeq ?? 0) + 1;
    const outcome = await this.api.messages(id, before > 1 ? { before, limit: HISTORY_PAGE } : { after: 0, limit: HISTORY_PAGE });
    this.busy.delete(id);
    if (!outcome.ok) return this.store.dispatch({ type: "loading", session: id, loading: outcome.failure });
    this.store.dispatch({ type: "newest", session: id, lines: outcome.value.lines, last: 0 });
    if (this.store.state.current !== id) return;
    this.socket.send({ op: "subscribe", session: id, after: logOf(this.store.state, id).live ?? 0 });
  }

  reload(id: string): void {
    void this.loadNewest(id);
  }

  private async oncePerRun(name: string, action: () => Promise<void>): Promise<void> {
    if (this.busy.has(name)) return;
    this.busy.add(name);
    try {
      await action();
    } finally {
      this.busy.delete(name);
    }
  }

  private keep(session: string, outcome: Outcome<Page>): readonly Line[] {
    if (outcome.ok) this.store.dispatch({ type: "history", session, lines: outcome.value.lines });
    return outcome.ok ? outcome.value.lines : [];
  }

  loadOlder(session: string, before: number): Promise<void> {
    return this.oncePerRun(`older ${session}`, async () => {
      const lines = this.keep(session, await this.api.messages(session, { before, limit: HISTORY_PAGE }));
      await this.closeHole(session, lastSeq(lines), before);
    });
  }

  /** A page can be cut short where its lines are large: read on until it meets what is there. */
  private async closeHole(session: string, last: number, until: number): Promise<void> {
    let known = last;
    for (let page = 0; page < PAGES_MAX && known > 0 && known < until - 1; page++) {
      const lines = this.keep(session, await this.api.messages(session, { after: known, limit: HISTORY_PAGE }));
      if (lines.length === 0) return;
      known = lastSeq(lines);
    }
  }

  loadNewer(session: string, after: number): Promise<void> {
    return this.oncePerRun(`newer ${session}`, async () => {
      this.keep(session, await this.api.messages(session, { after, limit: HISTORY_PAGE }));
    });
  }

  async jumpTo(session: string, seq: number): Promise<void> {
    const run = runAround(logOf(this.store.state, session), seq);
    const known = firstSeq(run) <= seq && seq <= lastSeq(run) && run.length > 0;
    if (!known) this.keep(session, await this.api.messages(session, { before: seq + AROUND, limit: 2 * AROUND }));
    this.store.dispatch({ type: "jump", session, seq });
  }

  search(session: string, text: string, before: number | undefined): Promise<Outcome<Page>> {
    return this.api.messages(session, { search: text, before, limit: 50 });
  }

  /** The person has this line before their eyes. */
  saw(session: string, seq: number): void {
    this.announcer.saw(session, seq);
  }

  // -- saying something --

  /** False if too much waits already: then it is not taken, and stays with whoever typed it. */
  say(session: string, text: string): boolean {
    return this.postman.post({ session, text });
  }

  /** False like `say`. */
  press(session: string, line: Line, index: number): boolean {
    const text = line.quickReplies?.[index];
    const before = outbox.pressOf(this.store.state.outbox, line.messageId);
    if (text === undefined || (before && before.state !== "failed")) return true;
    // The same button again is the same answer: its key makes sure that it counts once.
    if (before?.quickReplyIndex === index) {
      this.retry(before.key);
      return true;
    }
    if (before) this.discard(before.key);
    return this.postman.post({ session, text, inReplyTo: line.messageId, quickReplyIndex: index });
  }

  /** Tells an agent that is writing to stop; false if nobody can be told right now. */
  stop(session: string, agent: string): boolean {
    return this.store.state.phase === "online" && this.socket.send({ op: "stop", session, agent });
  }

  retry(key: string): void {
    this.postman.retry(key);
  }

  discard(key: string): void {
    this.postman.discard(key);
  }

  /** Read in the zone in which every time on this page is shown. */
  when(text: string): Promise<Outcome<Reading>> {
    return this.api.when(text, timezone().timezone ?? this.store.state.timezone);
  }

  // -- who --

  async loadAgents(): Promise<readonly { id: string; kind: string }[]> {
    const outcome = await this.api.agents();
    if (outcome.ok) this.store.dispatch({ type: "agents", agents: outcome.value });
    return outcome.ok ? outcome.value : [];
  }

  async loadPeople(): Promise<void> {
    const outcome = await this.api.people();
    if (outcome.ok) this.store.dispatch({ type: "people", people: outcome.value });
  }

  become(person: string): void {
    const address = new URL(location.href);
    address.searchParams.set("person", person);
    address.hash = "";
    location.assign(address);
  }

  /** Undefined if the token was accepted, else what was wrong. */
  async signIn(token: string, remember: boolean): Promise<"wrong" | "unreachable" | undefined> {
    this.api.token = token;
    const outcome = await this.api.sessions(this.store.state.person);
    if (!outcome.ok) return outcome.status === 401 ? "wrong" : "unreachable";
    device.set("token", remember ? token : null);
    tab.set("token", token);
    this.onPhase("connecting");
    this.socket.start();
    return undefined;
  }

  signOut(): void {
    device.set("token", null);
    tab.set("token", null);
    this.api.token = undefined;
    location.reload();
  }

  get signedIn(): boolean {
    return this.api.token !== undefined;
  }
}

function timezone(): { timezone?: string } {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone as string | undefined;
  return zone ? { timezone: zone } : {};
}
