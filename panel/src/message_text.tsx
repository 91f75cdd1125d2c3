import type { VNode } from "preact";
import { useLayoutEffect, useMemo, useState } from "preact/hooks";
import { useSurroundings } from "./context.ts";
import { ErrorBoundary } from "./error_boundary.tsx";
import { MARKDOWN_MAX } from "./markdown.ts";
import { Markdown } from "./markdown_view.tsx";
import { bytesOf } from "./outbox.ts";
import { Pace } from "./pace.ts";
import { size } from "./times.ts";

const BEGINNING = 3000;
const GROWS_EVERY = 250; // so often a text that grows is read anew

/** A text too long to read in a chat: its beginning, and the rest on demand. */
function LongText({ text }: { text: string }): VNode {
  const { t } = useSurroundings();
  const [open, setOpen] = useState(false);
  const length = size(bytesOf(text));
  return (
    <div>
      <p class="hint">{t("cutOff", { size: length })}</p>
      <p class="plain">{open ? text : `${text.slice(0, BEGINNING)}…`}</p>
      <button type="button" class="soft small" aria-expanded={open} onClick={() => setOpen(!open)}>
        {open ? t("showLess") : t("showAll", { size: length })}
      </button>
    </div>
  );
}

export function MessageText({ text }: { text: string }): VNode {
  if (text.length > MARKDOWN_MAX) return <LongText text={text} />;
  return (
    <ErrorBoundary otherwise={() => <p class="plain">{text}</p>}>
      <Markdown text={text} />
    </ErrorBoundary>
  );
}

/** A text that is still being written, as it was at most a quarter of a second ago. */
export function GrowingText({ text }: { text: string }): VNode {
  const [shown, setShown] = useState(text);
  const pace = useMemo(() => new Pace(text, GROWS_EVERY, setShown), []);
  useLayoutEffect(() => pace.put(text), [pace, text]);
  useLayoutEffect(() => () => pace.end(), [pace]);
  return <MessageText text={shown} />;
}
