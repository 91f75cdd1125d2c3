// Carries the outbox to the server: in order, under the same key until it is answered, and over a reload of the page.
import * as outbox from "./outbox.ts";
import { device } from "./storage.ts";
import type { Socket } from "./socket.ts";
import { logOf } from "./state.ts";
import type { Store } from "./store.ts";
import { nameThisTab, randomKey, whenGone } from "./tabs.ts";

export interface Letter {
  session: string;
  text: string;
  inReplyTo?: string;
  quickReplyIndex?: number;
}

export class Postman {
  private name: string | undefined;

  constructor(private readonly store: Store, private readonly socket: Socket) {}

  async start(): Promise<void> {
    this.name = await nameThisTab();
    const typedMeanwhile = this.store.state.outbox;
    this.keep([...outbox.restore(device.get(`outbox.${this.name}`)), ...typedMeanwhile]);
    for (const other of device.namesAfter("outbox.")) {
      if (other !== this.name) whenGone(other, () => this.adopt(other));
    }
    this.flush();
  }

  private adopt(other: string): void {
    const left = outbox.restore(device.get(`outbox.${other}`));
    device.set(`outbox.${other}`, null);
    this.keep([...left, ...this.store.state.outbox]);
    this.flush();
  }

  /** False if so much waits that this one is not taken. */
  post(letter: Letter): boolean {
    if (outbox.isFull(this.store.state.outbox)) return false;
    const entry: outbox.Entry = {
      ...letter,
      key: randomKey(),
      person: this.store.state.person,
      at: Date.now() + this.store.state.offset,
      state: "queued",
      after: logOf(this.store.state, letter.session).live ?? 0,
    };
    this.keep([...this.store.state.outbox, entry]);
    this.flush();
    return true;
  }

  retry(key: string): void {
    this.keep(outbox.retry(this.store.state.outbox, key));
    this.flush();
  }

  discard(key: string): void {
    this.keep(outbox.remove(this.store.state.outbox, key));
  }

  /** The server answered something; what is still open is written down. */
  settled(): void {
    this.write();
  }

  flush(): void {
    if (this.store.state.phase !== "online") return;
    for (const entry of outbox.waiting(this.store.state.outbox, this.store.state.person)) {
      if (!this.hand(entry)) return;
    }
  }

  private hand(entry: outbox.Entry): boolean {
    const { session, text, key, inReplyTo, quickReplyIndex } = entry;
    const reply = inReplyTo === undefined ? {} : { inReplyTo };
    const pressed = quickReplyIndex === undefined ? {} : { quickReplyIndex };
    if (!this.socket.send({ op: "send", session, text, key, ...reply, ...pressed })) return false;
    this.store.dispatch({ type: "outbox", entries: outbox.markSending(this.store.state.outbox, key, entry.after) });
    return true;
  }

  private keep(entries: readonly outbox.Entry[]): void {
    this.store.dispatch({ type: "outbox", entries });
    this.write();
  }

  private write(): void {
    if (this.name === undefined) return;
    const { outbox: entries } = this.store.state;
    const open = entries.some((entry) => entry.state !== "sent");
    device.set(`outbox.${this.name}`, open ? outbox.stored(entries) : null);
  }
}
