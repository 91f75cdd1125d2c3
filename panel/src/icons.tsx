import type { VNode } from "preact";

const SHAPES = {
  bell: "M12 3a1.3 1.3 0 0 0-1.300 1.500C7.900 5.100 6.200 7.500 6.200 10.500c0 4-1.400 5-2 6-.3.5 0 1.100.6 1.100h14.400c.6 0 .9-.6.6-1.100-.6-1-2-2-2-6 0-3-1.700-5.400-4.500-6A1.300 1.300 0 0 0 12 3zM9.800 19.500a2.300 2.300 0 0 0 4.400 0",
  plus: "M12 5v14M5 12h14",
  menu: "M4 7h16M4 12h16M4 17h10",
  close: "M6 6l12 12M18 6L6 18",
  search: "M10.500 17a6.500 6.500 0 1 0 0-13 6.500 6.500 0 0 0 0 13zM15.500 15.500L20 20",
  clock: "M12 20.500a8.500 8.500 0 1 0 0-17 8.500 8.500 0 0 0 0 17zM12 7.500V12l3 2",
  settings: "M4 7h9M17 7h3M4 17h3M11 17h9M15 9.500a2.500 2.500 0 1 0 0-5 2.500 2.500 0 0 0 0 5zM9 19.500a2.500 2.500 0 1 0 0-5 2.500 2.500 0 0 0 0 5z",
  send: "M12 19V5M6 11l6-6 6 6",
  down: "M12 5v14M6 13l6 6 6-6",
  copy: "M9 9h10v11H9zM15 9V4H5v11h4",
  check: "M5 12.500l4.500 4.500L19 7.500",
  alert: "M12 4l9 16H3zM12 10v5M12 17.500v.5",
  question: "M9 9.500a3 3 0 1 1 4.200 2.700c-.8.400-1.200 1-1.200 1.800v.5M12 17.500v.5M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18z",
  keyboard: "M3 6.500h18v11H3zM7 10h.01M10.500 10h.01M14 10h.01M17.500 10h.01M8 14h8",
  arrow: "M5 12h14M13 6l6 6-6 6",
  stop: "M7 7h10v10H7z",
  hourglass: "M6.500 3.500h11M6.500 20.500h11M8 3.500V7c0 2.200 4 3.500 4 5s-4 2.800-4 5v3.500M16 3.500V7c0 2.200-4 3.500-4 5s4 2.800 4 5v3.500",
  tool: "M14.500 6.500a4 4 0 0 0-5.300 5L3.800 17a2.200 2.200 0 0 0 3.200 3.200l5.500-5.400a4 4 0 0 0 5-5.300l-2.600 2.600-2.900-.600-.600-2.900z",
  more: "M6 9.500l6 6 6-6",
  skip: "M5 12h14",
  save: "M12 4v11M7 11l5 5 5-5M5 20h14",
} as const;

export type IconName = keyof typeof SHAPES;

/** Decoration only: whatever bears an icon has words of its own. */
export function Icon({ name }: { name: IconName }): VNode {
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      <path d={SHAPES[name]} />
    </svg>
  );
}
