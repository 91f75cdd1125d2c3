// What the person has seen, and how they hear of the rest: the count in the title, and a notification if they asked for it.
import { device } from "./storage.ts";
import type { Store } from "./store.ts";
import { sessionName, unreadInAll } from "./state.ts";
import type { Session } from "./types.ts";

const BODY_MAX = 160;

function readSeen(value: unknown): Record<string, number> | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  return Object.fromEntries(Object.entries(value).filter((pair): pair is [string, number] => typeof pair[1] === "number"));
}

export function notificationsWanted(): boolean {
  return device.get("notify") === "yes" && "Notification" in window && Notification.permission === "granted";
}

/** Asks the browser, and so the person, only when they press the switch. */
export async function wantNotifications(wanted: boolean): Promise<boolean> {
  device.set("notify", wanted ? "yes" : null);
  if (wanted && "Notification" in window) await Notification.requestPermission();
  return notificationsWanted();
}

export class Announcer {
  private known = false;

  constructor(private readonly store: Store) {
    store.subscribe(() => this.showCount());
    addEventListener("storage", (event) => {
      if (event.key === `belfry.${this.name}`) this.restoreSeen();
    });
  }

  private get name(): string {
    return `seen.${this.store.state.person}`;
  }

  restoreSeen(): void {
    const seen = readSeen(device.getJson(this.name));
    if (!seen) return;
    this.known = true;
    this.store.dispatch({ type: "allSeen", seen: newest(this.store.state.seen, seen) });
  }

  /** On a device that knows nothing yet, what was said before it came is not news. */
  firstSight(sessions: readonly Session[]): void {
    if (this.known) return;
    this.known = true;
    const seen = Object.fromEntries(sessions.map((session) => [session.id, session.lastSeq]));
    this.store.dispatch({ type: "allSeen", seen: newest(this.store.state.seen, seen) });
    this.write();
  }

  saw(session: string, seq: number): void {
    if ((this.store.state.seen[session] ?? 0) >= seq) return;
    this.store.dispatch({ type: "seen", session, seq });
    this.write();
  }

  private write(): void {
    // Another tab may have seen more of other chats.
    const stored = readSeen(device.getJson(this.name)) ?? {};
    device.set(this.name, JSON.stringify(newest(stored, this.store.state.seen)));
  }

  said(id: string, from: string, text: string): void {
    const { person, sessions } = this.store.state;
    if (!document.hidden || from === person || !notificationsWanted()) return;
    const session = sessions.get(id);
    const title = session && sessionName(session) !== from ? `${from} · ${sessionName(session)}` : from;
    try {
      const notification = new Notification(title, { body: text.slice(0, BODY_MAX), tag: id, icon: "/belfry.svg" });
      notification.onclick = () => {
        window.focus();
        location.hash = id;
      };
    } catch {
      // Some phones only take notifications from a service worker, and there is none.
    }
  }

  private showCount(): void {
    const count = unreadInAll(this.store.state);
    const title = count > 0 ? `(${count}) Belfry` : "Belfry";
    if (document.title !== title) document.title = title;
  }
}

function newest(a: Readonly<Record<string, number>>, b: Readonly<Record<string, number>>): Record<string, number> {
  const result = { ...a };
  for (const [id, seq] of Object.entries(b)) result[id] = Math.max(seq, result[id] ?? 0);
  return result;
}
