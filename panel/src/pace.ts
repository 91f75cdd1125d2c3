// The latest of what comes, but not more often than every so many milliseconds: what an agent is writing comes a word at a time, and
// each time all of it would be read anew.

/** Milliseconds that only grow, and something to be done later. */
export interface Timers {
  now(): number;
  after(milliseconds: number, run: () => void): () => void;
}

export const pageTimers: Timers = {
  now: () => performance.now(),
  after: (milliseconds, run) => {
    const timer = setTimeout(run, milliseconds);
    return () => clearTimeout(timer);
  },
};

export class Pace<T> {
  private latest: T;
  private shownAt: number;
  private cancel: (() => void) | undefined;
  private readonly every: number;
  private readonly show: (value: T) => void;
  private readonly timers: Timers;

  /** `first` is shown already. */
  constructor(first: T, every: number, show: (value: T) => void, timers: Timers = pageTimers) {
    this.latest = first;
    this.every = every;
    this.show = show;
    this.timers = timers;
    this.shownAt = timers.now();
  }

  /** Shows it, at once if it has been long enough, else as soon as it has; something newer may take its place until then. */
  put(value: T): void {
    if (value === this.latest) return;
    this.latest = value;
    if (this.cancel) return;
    const wait = this.shownAt + this.every - this.timers.now();
    if (wait <= 0) this.showLatest();
    else this.cancel = this.timers.after(wait, () => this.showLatest());
  }

  /** Nothing is shown after this. */
  end(): void {
    this.cancel?.();
    this.cancel = undefined;
  }

  private showLatest(): void {
    this.cancel = undefined;
    this.shownAt = this.timers.now();
    this.show(this.latest);
  }
}
