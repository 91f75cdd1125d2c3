// Holds the state and tells the views. Frames can come by the hundred: the views hear of them once a frame of the screen.
import { initialState, reduce, type Event, type State } from "./state.ts";

const HIDDEN_PAUSE = 100; // no frames are drawn in a hidden page, but its title changes

export class Store {
  state: State;
  private readonly listeners = new Set<() => void>();
  private waiting = false;

  constructor(person: string) {
    this.state = initialState(person);
  }

  dispatch(event: Event): void {
    const next = reduce(this.state, event);
    if (next === this.state) return;
    this.state = next;
    if (this.waiting) return;
    this.waiting = true;
    const tell = (): void => this.tell();
    requestAnimationFrame(tell);
    setTimeout(tell, HIDDEN_PAUSE);
  }

  subscribe(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  private tell(): void {
    if (!this.waiting) return;
    this.waiting = false;
    for (const listener of this.listeners) listener();
  }
}
