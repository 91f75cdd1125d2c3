import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { useSurroundings } from "./context.ts";
import { ErrorBoundary } from "./error_boundary.tsx";
import { MARKDOWN_MAX } from "./markdown.ts";
import { Markdown } from "./markdown_view.tsx";
import { bytesOf } from "./outbox.ts";
import { size } from "./times.ts";

const BEGINNING = 3000;

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
