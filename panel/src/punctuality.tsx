import type { VNode } from "preact";
import { useId, useLayoutEffect, useState } from "preact/hooks";
import { useSurroundings } from "./context.ts";
import { clockTime, exact, precise, punctuality } from "./times.ts";
import type { Line } from "./types.ts";

function Details({ line, id }: { line: Line; id: string }): VNode {
  const { t, language } = useSurroundings();
  const asked = Date.parse(line.createdAt);
  const due = Date.parse(line.dueAt ?? line.createdAt);
  const said = Date.parse(line.saidAt);
  const { kind, by } = punctuality(due, said);
  return (
    <dl class="punctuality" id={id} aria-label={t("punctualityTitle")}>
      <dt>{t("asked")}</dt><dd>{exact(asked, language)}</dd>
      <dt>{t("due")}</dt><dd>{line.dueAt === undefined ? t("atOnce") : exact(due, language)}</dd>
      <dt>{t("delivered")}</dt><dd>{exact(said, language)}</dd>
      <dt>{t("lateness")}</dt><dd class={`lateness-${kind}`}>{t(kind, { time: precise(by, language) })}</dd>
    </dl>
  );
}

/** The time of a line; pressed, it says when it was asked for, due and delivered. */
export function TimeButton({ line }: { line: Line }): VNode {
  const { t, language } = useSurroundings();
  const [open, setOpen] = useState(false);
  const id = useId();
  const said = Date.parse(line.saidAt);

  // Not useEffect: that would be after the next frame, and an Escape before it would be lost.
  useLayoutEffect(() => {
    if (!open) return undefined;
    const onKey = (event: KeyboardEvent): void => {
      if (event.key === "Escape") setOpen(false);
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, [open]);

  return (
    <>
      <button type="button" class="time-button" title={exact(said, language)} aria-expanded={open} aria-controls={open ? id : undefined}
        aria-label={`${clockTime(said)}, ${t("punctuality")}`} onClick={() => setOpen(!open)}>
        {clockTime(said)}
      </button>
      {open ? <Details line={line} id={id} /> : null}
    </>
  );
}
