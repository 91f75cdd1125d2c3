// The runs of the chat that is open: read when the page begins to follow it, and further back as one scrolls.
import type { Api, Outcome, RunsPage } from "./api.ts";
import { isRunning } from "./runs.ts";
import type { Store } from "./store.ts";
import type { StepDetails, ToolRun } from "./types.ts";

const PAGE = 50;
const PAGES_MAX = 20; // read on in one go
const ASK_AGAIN = 3000;
const STRAGGLERS_MAX = 20;

/** How far back the runs of a chat were read. */
interface Reached {
  oldest: number;
  next: string | undefined;
}

export class RunList {
  private readonly reached = new Map<string, Reached>();
  private readonly busy = new Set<string>();
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly store: Store, private readonly api: Api) {}

  /** The newest ones, and those under way that are older. */
  changed(session: string): void {
    clearTimeout(this.timer);
    if (session === this.store.state.current) void this.load(session);
  }

  private async load(session: string): Promise<void> {
    const outcome = await this.api.runs(session, { limit: PAGE });
    if (!outcome.ok) {
      // A server that knows no runs has none.
      if (outcome.status !== 404) this.timer = setTimeout(() => this.changed(session), ASK_AGAIN);
      return;
    }
    this.keep(session, outcome.value);
    await this.askAfterStragglers(session, outcome.value.runs);
  }

  private keep(session: string, { runs, next }: RunsPage): void {
    const oldest = Math.min(...runs.map((run) => run.afterSeq));
    this.reached.set(session, { oldest, next: runs.length === 0 ? undefined : next });
    this.store.dispatch({ type: "runs", runs });
  }

  /** What ran when the connection was lost, and is not among the newest. */
  private async askAfterStragglers(session: string, read: readonly ToolRun[]): Promise<void> {
    const ids = new Set(read.map((run) => run.id));
    const open = [...this.store.state.runs.values()].filter((run) => run.session === session && isRunning(run) && !ids.has(run.id));
    for (const { id } of open.slice(0, STRAGGLERS_MAX)) {
      const outcome = await this.api.run(id);
      if (outcome.ok) this.store.dispatch({ type: "runs", runs: [outcome.value.run] });
      else if (outcome.status === 404) this.store.dispatch({ type: "runGone", id });
    }
  }

  /** Somebody looks at the lines from this number on. */
  async reach(session: string, seq: number): Promise<void> {
    if (this.busy.has(session)) return;
    this.busy.add(session);
    const lowest = seq <= 1 ? 0 : seq; // above the first line there may be some, too
    for (let page = 0; page < PAGES_MAX; page++) {
      const before = this.reached.get(session);
      if (!before || before.next === undefined || before.oldest < lowest) break;
      const outcome = await this.api.runs(session, { limit: PAGE, after: before.next });
      if (!outcome.ok) break;
      this.keep(session, outcome.value);
    }
    this.busy.delete(session);
  }

  async cancel(id: string): Promise<Outcome<ToolRun>> {
    const outcome = await this.api.cancelRun(id);
    if (outcome.ok) this.store.dispatch({ type: "runs", runs: [outcome.value] });
    return outcome;
  }

  async details(id: string): Promise<Outcome<StepDetails[]>> {
    const outcome = await this.api.run(id);
    if (!outcome.ok) return outcome;
    this.store.dispatch({ type: "runs", runs: [outcome.value.run] });
    return { ok: true, value: outcome.value.details };
  }
}
