// The browser's storage, which may be full or forbidden: then things are kept only as long as the page.

function safely<T>(action: () => T, otherwise: T): T {
  try {
    return action();
  } catch {
    return otherwise;
  }
}

export class Shelf {
  constructor(private readonly place: () => Storage) {}

  get(name: string): string | null {
    return safely(() => this.place().getItem(`belfry.${name}`), null);
  }

  set(name: string, value: string | null): void {
    safely(() => {
      if (value === null) this.place().removeItem(`belfry.${name}`);
      else this.place().setItem(`belfry.${name}`, value);
    }, undefined);
  }

  /** The names that begin like this, without the beginning. */
  namesAfter(beginning: string): string[] {
    const whole = `belfry.${beginning}`;
    const names = safely(() => Object.keys(this.place()), []);
    return names.filter((name) => name.startsWith(whole)).map((name) => name.slice(whole.length));
  }

  getJson(name: string): unknown {
    return safely<unknown>(() => JSON.parse(this.get(name) ?? "null"), null);
  }
}

/** Shared by all tabs, and stays. */
export const device = new Shelf(() => localStorage);
/** This tab's own; survives a reload. */
export const tab = new Shelf(() => sessionStorage);
