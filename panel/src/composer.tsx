import type { VNode } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { useSurroundings } from "./context.ts";
import { Icon } from "./icons.tsx";
import { bytesOf, TEXT_BYTES_MAX } from "./outbox.ts";
import { tab } from "./storage.ts";

const NEAR_LIMIT = TEXT_BYTES_MAX * 0.8;

export interface ComposerProps {
  session: string;
  /** An example that somebody pressed; the count tells two presses apart. */
  fill: { text: string; count: number };
  /** False if it was not taken: then it stays where it is. */
  onSend: (text: string) => boolean;
}

/** Enter while a Chinese word is being composed chooses the word, and must not send. 229 is what Safari says instead. */
export function isSendKey(event: { key: string; shiftKey: boolean; isComposing: boolean; keyCode: number }): boolean {
  return event.key === "Enter" && !event.shiftKey && !event.isComposing && event.keyCode !== 229;
}

function fitHeight(area: HTMLTextAreaElement): void {
  area.style.height = "auto";
  area.style.height = `${area.scrollHeight}px`;
}

function Limit({ bytes, id }: { bytes: number; id: string }): VNode | null {
  const { t } = useSurroundings();
  if (bytes <= NEAR_LIMIT) return null;
  const over = bytes > TEXT_BYTES_MAX;
  const values = { bytes: bytes.toLocaleString("en"), max: TEXT_BYTES_MAX.toLocaleString("en") };
  return <p id={id} class={over ? "limit failure" : "limit"} role={over ? "alert" : undefined}>{t(over ? "tooLong" : "nearLimit", values)}</p>;
}

export function Composer({ session, fill, onSend }: ComposerProps): VNode {
  const { t } = useSurroundings();
  const area = useRef<HTMLTextAreaElement>(null);
  const [text, setText] = useState(() => tab.get(`draft.${session}`) ?? "");
  const bytes = text.length * 3 > NEAR_LIMIT ? bytesOf(text) : text.length;
  const ready = text.trim() !== "" && bytes <= TEXT_BYTES_MAX;

  const change = (next: string): void => {
    setText(next);
    tab.set(`draft.${session}`, next === "" ? null : next);
  };
  useLayoutEffect(() => {
    if (fill.count === 0) return;
    change(fill.text);
    area.current?.focus();
  }, [fill.count]);
  useLayoutEffect(() => {
    if (area.current) fitHeight(area.current);
  }, [text]);

  const send = (): void => {
    if (!ready) return;
    if (onSend(text)) change("");
    area.current?.focus();
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (!isSendKey(event)) return;
    event.preventDefault();
    send();
  };
  return (
    <form class="composer" onSubmit={(event) => { event.preventDefault(); send(); }}>
      <Limit bytes={bytes} id="composer-limit" />
      <div class="composer-row">
        <textarea ref={area} rows={1} dir="auto" value={text} placeholder={t("composer")} aria-label={t("composer")}
          aria-describedby="composer-hint composer-limit" aria-invalid={bytes > TEXT_BYTES_MAX} enterkeyhint="send"
          onInput={(event) => change(event.currentTarget.value)} onKeyDown={onKeyDown} />
        <button type="submit" class="send" disabled={!ready} aria-label={t("send")} title={t("send")}><Icon name="send" /></button>
      </div>
      <p class="composer-hint" id="composer-hint">{t("composerHint")}</p>
    </form>
  );
}
