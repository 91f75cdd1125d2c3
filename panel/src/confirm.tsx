import type { RefObject, VNode } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { useSurroundings } from "./context.ts";

export interface ConfirmProps {
  question: string;
  onYes: () => void;
  onNo: () => void;
}

/** Asked in the place of the button that was pressed. */
export function Confirm({ question, onYes, onNo }: ConfirmProps): VNode {
  const { t } = useSurroundings();
  return (
    <div class="buttons wrap" role="group" aria-label={question}>
      <span>{question}</span>
      <button type="button" class="danger" onClick={onYes}>{t("yes")}</button>
      <button type="button" class="quiet" onClick={onNo}>{t("no")}</button>
    </div>
  );
}

/** What was pressed is gone when something else stands in its place: the focus goes to that, and not to nowhere. */
export function useFocusInside(place: RefObject<HTMLElement | null>, open: unknown): void {
  const before = useRef(open);
  useLayoutEffect(() => {
    if (before.current !== open) place.current?.querySelector<HTMLElement>("textarea, input, button")?.focus();
    before.current = open;
  }, [open]);
}
