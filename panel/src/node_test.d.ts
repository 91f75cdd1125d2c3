// Only what the unit tests use of Node, so that the page's own code cannot use it by mistake.
declare module "node:test" {
  export function test(name: string, body: () => void | Promise<void>): void;
}
declare module "node:assert/strict" {
  const assert: {
    (value: unknown, message?: string): void;
    equal(actual: unknown, expected: unknown, message?: string): void;
    deepEqual(actual: unknown, expected: unknown, message?: string): void;
    ok(value: unknown, message?: string): void;
    match(actual: string, expected: RegExp): void;
  };
  export { assert as strict };
}
declare module "node:process" {
  /** Microseconds, since the time that is given. */
  export function cpuUsage(since?: { user: number; system: number }): { user: number; system: number };
}
