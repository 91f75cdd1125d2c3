// Which tab this is, and what becomes of what others have left behind. A tab holds a lock with its name as long as it lives;
// whoever gets that lock knows that it is gone.
import { tab } from "./storage.ts";

export function randomKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

const never = new Promise<never>(() => {});

function locks(): LockManager | undefined {
  return navigator.locks as LockManager | undefined; // only there on loopback and over https
}

function newName(): string {
  const name = randomKey();
  tab.set("tab", name);
  return name;
}

/** Resolves when it is known whether the lock was free; it is then held until the page ends. */
function tryHold(name: string): Promise<boolean> {
  const manager = locks();
  if (!manager) return Promise.resolve(true);
  return new Promise((resolve) => {
    const held = manager.request(`belfry-tab-${name}`, { ifAvailable: true }, (lock) => {
      resolve(lock !== null);
      return lock === null ? undefined : never;
    });
    held.catch(() => resolve(true));
  });
}

/** The name of this tab: the one it had before a reload, unless a copy of the tab has it. */
export async function nameThisTab(): Promise<string> {
  const before = tab.get("tab");
  if (before !== null && (await tryHold(before))) return before;
  const name = newName();
  await tryHold(name);
  return name;
}

/** Calls back when the tab of that name is gone: at once if it is, or if nobody can tell. */
export function whenGone(name: string, adopt: () => void): void {
  const manager = locks();
  if (!manager) adopt();
  else manager.request(`belfry-tab-${name}`, adopt).catch(adopt);
}
