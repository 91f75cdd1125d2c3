import type { VNode } from "preact";
import { ComingItemView } from "./coming_item.tsx";
import { useSurroundings } from "./context.ts";
import { Icon } from "./icons.tsx";
import type { State } from "./state.ts";

export interface ComingDrawerProps {
  state: State;
  onClose: () => void;
  onJump: () => void;
}

function Unread({ session }: { session: string }): VNode {
  const { panel, t } = useSurroundings();
  return (
    <div class="note" role="alert">
      <p>{t("comingFailed")}</p>
      <button type="button" class="soft" onClick={() => panel.coming.changed(session)}>{t("retry")}</button>
    </div>
  );
}

function Items({ state, onJump }: ComingDrawerProps): VNode {
  const { t } = useSurroundings();
  const { coming, current } = state;
  if (!coming || current === undefined) return <p class="note">{t("loading")}</p>;
  if (coming.failed && coming.items.length === 0) return <Unread session={current} />;
  if (coming.items.length === 0) {
    return (
      <div class="empty small">
        <span class="empty-bell"><Icon name="clock" /></span>
        <p>{t("comingEmpty")}</p><p class="hint">{t("comingEmptyHint")}</p>
      </div>
    );
  }
  return (
    <ul class="coming-items">
      {coming.items.map((item) => <ComingItemView key={`${item.kind}-${item.id}`} session={current} item={item} onJump={onJump} />)}
      {coming.more ? <li class="note">{t("comingMore")}</li> : null}
    </ul>
  );
}

export function ComingDrawer(props: ComingDrawerProps): VNode {
  const { t } = useSurroundings();
  const { counts } = props.state;
  return (
    <aside class="drawer" aria-label={t("coming")}>
      <header>
        <h2>{t("coming")}</h2>
        <button type="button" class="round" aria-label={t("close")} onClick={props.onClose}><Icon name="close" /></button>
      </header>
      <div class="drawer-body"><Items {...props} /></div>
      {counts ? <footer class="hint counts">{t("counts", { ...counts })}</footer> : null}
    </aside>
  );
}
