// What is coming in the chat that is open: read when something changed or came due, and changed by the person.
import type { Api, Outcome } from "./api.ts";
import type { Store } from "./store.ts";
import type { ComingItem, Millis } from "./types.ts";

const PAUSE = 80; // changes come in bunches
const BEHIND_DUE = 400; // by then the server has said it
const TIMER_MAX = 2 ** 31 - 1; // a longer timeout would fire at once

export class ComingList {
  private timer: ReturnType<typeof setTimeout> | undefined;
  private dueTimer: ReturnType<typeof setTimeout> | undefined;
  private looks = 0;

  constructor(private readonly store: Store, private readonly api: Api, private readonly now: () => Millis) {}

  changed(session: string | undefined): void {
    if (session === undefined || session !== this.store.state.current) return;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.load(session), PAUSE);
  }

  private async load(session: string): Promise<void> {
    const look = ++this.looks;
    const outcome = await this.api.coming(session);
    // Answers may come in another order than they were asked for.
    if (session !== this.store.state.current || look !== this.looks) return;
    const before = this.store.state.coming;
    const read = outcome.ok ? outcome.value : { items: before?.items ?? [], more: before?.more ?? false };
    this.store.dispatch({ type: "coming", coming: { session, ...read, failed: !outcome.ok } });
    this.lookWhenDue(session, read.items);
  }

  private lookWhenDue(session: string, items: readonly ComingItem[]): void {
    clearTimeout(this.dueTimer);
    const now = this.now();
    const next = Math.min(...items.map((item) => Date.parse(item.at)).filter((at) => at > now));
    if (Number.isFinite(next)) this.dueTimer = setTimeout(() => this.changed(session), Math.min(TIMER_MAX, next - now + BEHIND_DUE));
  }

  private async change(action: Promise<Outcome<unknown>>): Promise<Outcome<unknown>> {
    const outcome = await action;
    this.changed(this.store.state.current);
    return outcome;
  }

  move(item: ComingItem, at: Millis): Promise<Outcome<unknown>> {
    return this.change(this.api.move(item, new Date(at).toISOString()));
  }

  rewrite(item: ComingItem, text: string, at: Millis | undefined): Promise<Outcome<unknown>> {
    return this.change(this.api.rewrite(item, text, at === undefined ? undefined : new Date(at).toISOString()));
  }

  sendNow(item: ComingItem): Promise<Outcome<unknown>> {
    return this.change(this.api.sendNow(item));
  }

  cancel(item: ComingItem): Promise<Outcome<unknown>> {
    return this.change(this.api.cancel(item));
  }
}
