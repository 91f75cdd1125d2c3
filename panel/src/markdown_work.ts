// What bounds the reader of Markdown: its work, not the clock. Whoever writes a message cannot make the page stand still.

/** Thrown by a reader that has done all that it may. */
export class TooMuchWork extends Error {}

/**
 * Counts the steps of a reader. One step is one letter that a rule looks at or copies, or one delimiter, bracket or line that it
 * compares; where a built-in search looks at letters, all of those that it may look at are counted before it begins.
 */
export class Work {
  steps = 0;
  private readonly most: number;

  constructor(most: number) {
    this.most = most;
  }

  spend(steps: number): void {
    this.steps += steps;
    if (this.steps > this.most) throw new TooMuchWork();
  }
}
