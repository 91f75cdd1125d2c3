import type { VNode } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { useSurroundings } from "./context.ts";
import { Icon } from "./icons.tsx";
import { dayAndTime } from "./times.ts";
import type { Line } from "./types.ts";

const PAUSE = 250;
const EMPTY_PAGES_MAX = 20; // a page may find nothing and still have another one behind it
const SNIPPET = 160;

interface Found {
  lines: readonly Line[];
  next: number | undefined;
  problem: string | undefined;
}

/** The part of a text around what was looked for. */
export function snippet(text: string, wanted: string): string {
  const place = text.toLowerCase().indexOf(wanted.toLowerCase());
  const start = Math.max(0, place - 40);
  return `${start > 0 ? "…" : ""}${text.slice(start, start + SNIPPET)}${start + SNIPPET < text.length ? "…" : ""}`;
}

function Result({ line, wanted, onOpen }: { line: Line; wanted: string; onOpen: () => void }): VNode {
  const { panel, language } = useSurroundings();
  return (
    <li>
      <button type="button" class="result" onClick={onOpen}>
        <span class="result-head"><strong dir="auto">{line.from}</strong><span class="hint">{dayAndTime(Date.parse(line.saidAt), panel.now(), language)}</span></span>
        <span class="result-text" dir="auto">{snippet(line.text, wanted)}</span>
      </button>
    </li>
  );
}

/** Newest first, page by page. */
function useSearch(session: string, text: string): { found: Found | undefined; more: () => void } {
  const { panel } = useSurroundings();
  const [found, setFound] = useState<Found>();
  const turn = useRef(0);

  const read = async (known: readonly Line[], from: number | undefined): Promise<void> => {
    const mine = ++turn.current;
    let before = from;
    for (let page = 0; page < EMPTY_PAGES_MAX; page++) {
      const outcome = await panel.search(session, text, before);
      if (mine !== turn.current) return;
      if (!outcome.ok) return setFound({ lines: known, next: undefined, problem: outcome.failure.message });
      const { lines, next } = outcome.value;
      if (lines.length > 0 || next === undefined) return setFound({ lines: [...known, ...lines.toReversed()], next, problem: undefined });
      before = next;
    }
    setFound({ lines: known, next: before, problem: undefined });
  };
  useEffect(() => {
    turn.current++;
    setFound(undefined);
    if (text.trim() === "") return undefined;
    const timer = setTimeout(() => void read([], undefined), PAUSE);
    return () => clearTimeout(timer);
  }, [session, text]);
  return { found, more: () => void read(found?.lines ?? [], found?.next) };
}

export interface SearchProps {
  session: string;
  onClose: () => void;
}

export function Search({ session, onClose }: SearchProps): VNode {
  const { panel, t } = useSurroundings();
  const [text, setText] = useState("");
  const field = useRef<HTMLInputElement>(null);
  const { found, more } = useSearch(session, text);
  // At once, so that nothing of what is typed next goes elsewhere.
  useLayoutEffect(() => field.current?.focus(), []);
  const open = (line: Line): void => {
    void panel.jumpTo(session, line.seq);
    onClose();
  };
  return (
    <section class="search" role="search" aria-label={t("search")}>
      <div class="search-row">
        <Icon name="search" />
        <input ref={field} type="search" dir="auto" value={text} placeholder={t("searchPlaceholder")} aria-label={t("search")}
          maxLength={200} onInput={(event) => setText(event.currentTarget.value)} />
        <button type="button" class="round" aria-label={t("close")} onClick={onClose}><Icon name="close" /></button>
      </div>
      <div class="search-results">
        <p class="hint" role="status">
          {found?.problem ? t("searchFailed", { reason: found.problem }) : null}
          {found && !found.problem ? (found.lines.length === 0 ? t("searchNone") : t("searchResults", { count: found.lines.length })) : null}
        </p>
        {found ? <ul>{found.lines.map((line) => <Result key={line.seq} line={line} wanted={text} onOpen={() => open(line)} />)}</ul> : null}
        {found?.next === undefined ? null : <button type="button" class="soft" onClick={more}>{t("searchMore")}</button>}
      </div>
    </section>
  );
}
