import type { ComponentChildren, VNode } from "preact";
import { useId, useLayoutEffect, useRef } from "preact/hooks";
import { useSurroundings } from "./context.ts";
import { Icon } from "./icons.tsx";

export interface DialogProps {
  title: string;
  /** A class of its own, for what needs more room. */
  kind?: string;
  onClose: () => void;
  children: ComponentChildren;
}

/** The browser's own dialog: it keeps the focus inside, gives it back, and Escape closes it. */
export function Dialog({ title, kind, onClose, children }: DialogProps): VNode {
  const { t } = useSurroundings();
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  useLayoutEffect(() => {
    dialog.current?.showModal();
    return () => dialog.current?.close();
  }, []);
  const onBackdrop = (event: MouseEvent): void => {
    if (event.target === dialog.current) onClose();
  };
  return (
    <dialog ref={dialog} class={kind ? `dialog ${kind}` : "dialog"} aria-labelledby={id} onCancel={(event) => { event.preventDefault(); onClose(); }} onClick={onBackdrop}>
      <div class="dialog-inner">
        <header>
          <h2 id={id}>{title}</h2>
          <button type="button" class="round" aria-label={t("close")} onClick={onClose}><Icon name="close" /></button>
        </header>
        {children}
      </div>
    </dialog>
  );
}
