// Small checked readers for what others sent: a value of the right kind, or undefined.

export type Fields = Record<string, unknown>;

export function fieldsOf(value: unknown): Fields | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : undefined;
}

export function text(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

export function count(value: unknown): number | undefined {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
}

export function texts(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((each): each is string => typeof each === "string") : [];
}

export function instant(value: unknown): string | undefined {
  return typeof value === "string" && !Number.isNaN(Date.parse(value)) ? value : undefined;
}

/** Leaves out what is undefined, so that a field is either there or absent. */
export function given<T extends object>(fields: { [K in keyof T]?: T[K] | undefined }): Partial<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Partial<T>;
}

/** The good ones among many: one that makes no sense does not hide the others. */
export function each<T>(value: unknown, read: (one: unknown, index: number) => T | undefined): T[] {
  if (!Array.isArray(value)) return [];
  return value.map(read).filter((one): one is Awaited<T> & T => one !== undefined);
}
