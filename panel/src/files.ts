// Files that tools have left. They need the token like everything else, so the page fetches them and shows them as blobs.
// A few are kept: a line that slides out of the page and back in need not be fetched, and does not jump.
import type { Api, Outcome } from "./api.ts";

const UNUSED_MAX = 30;

/** A picture that is ready to be drawn: its size is known, so the lines around it move once and not twice. */
export interface Picture {
  url: string;
  width: number;
  height: number;
}

async function decoded(blob: Blob): Promise<Picture | undefined> {
  const image = new Image();
  image.src = URL.createObjectURL(blob);
  try {
    await image.decode();
    return { url: image.src, width: image.naturalWidth, height: image.naturalHeight };
  } catch {
    URL.revokeObjectURL(image.src);
    return undefined;
  }
}

interface Kept {
  picture: Promise<Picture | undefined>;
  users: number;
}

export class Files {
  private readonly kept = new Map<string, Kept>();

  constructor(private readonly api: Api) {}

  /** Undefined if there is none that can be shown. Each call needs a `release`. */
  use(address: string): Promise<Picture | undefined> {
    const file = this.kept.get(address) ?? { picture: this.fetch(address), users: 0 };
    file.users++;
    this.kept.delete(address);
    this.kept.set(address, file);
    return file.picture;
  }

  release(address: string): void {
    const file = this.kept.get(address);
    if (!file) return;
    file.users--;
    const unused = [...this.kept].filter(([, each]) => each.users <= 0);
    for (const [name, each] of unused.slice(0, Math.max(0, unused.length - UNUSED_MAX))) this.drop(name, each);
  }

  /** For good: as a file of the person's. */
  async save(address: string, name: string): Promise<Outcome<Blob>> {
    const outcome = await this.api.file(address);
    if (!outcome.ok) return outcome;
    const link = document.createElement("a");
    link.href = URL.createObjectURL(outcome.value);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
    return outcome;
  }

  private async fetch(address: string): Promise<Picture | undefined> {
    const outcome = await this.api.file(address);
    const picture = outcome.ok ? await decoded(outcome.value) : undefined;
    if (!picture) this.kept.delete(address); // asked for again by the next one
    return picture;
  }

  private drop(address: string, file: Kept): void {
    this.kept.delete(address);
    void file.picture.then((picture) => picture && URL.revokeObjectURL(picture.url));
  }
}
