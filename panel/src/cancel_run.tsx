import type { VNode } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { useAction } from "./action.ts";
import { Confirm, useFocusInside } from "./confirm.tsx";
import { useSurroundings } from "./context.ts";

export interface CancelRunProps {
  id: string;
  /** It goes away while it has the focus: the run has ended. */
  onLeave?: () => void;
}

/** Ends a run with all of its steps; there is no way back, so it asks. */
export function CancelRun({ id, onLeave }: CancelRunProps): VNode {
  const { panel, t } = useSurroundings();
  const act = useAction();
  const [open, setOpen] = useState(false);
  const place = useRef<HTMLDivElement>(null);
  useFocusInside(place, open);
  useLayoutEffect(() => () => {
    if (place.current?.contains(document.activeElement)) onLeave?.();
  }, []);
  const cancel = async (): Promise<void> => {
    await act(panel.runs.cancel(id), t("doneCancelled"));
    panel.coming.changed(panel.store.state.current);
    setOpen(false);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key !== "Escape" || !open) return;
    event.preventDefault();
    setOpen(false);
  };
  return (
    <div ref={place} class={open ? "cancel-run asking" : "cancel-run"} onKeyDown={onKeyDown}>
      {open
        ? <Confirm question={t("runCancelSure")} onYes={() => void cancel()} onNo={() => setOpen(false)} />
        : <button type="button" class="quiet small" onClick={() => setOpen(true)}>{t("cancel")}</button>}
    </div>
  );
}
