import type { VNode } from "preact";

const COLOURS = 8;

/** The same name has the same colour everywhere. */
export function colourOf(name: string): number {
  let hash = 7;
  for (const character of name) hash = (hash * 31 + (character.codePointAt(0) ?? 0)) % 9973;
  return hash % COLOURS;
}

export function Avatar({ name }: { name: string }): VNode {
  const initial = [...name][0]?.toUpperCase() ?? "?";
  return <span class={`avatar avatar-${colourOf(name)}`} aria-hidden="true">{initial}</span>;
}
