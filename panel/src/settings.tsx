import type { VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import { notificationsWanted, wantNotifications } from "./announcer.ts";
import { useSurroundings } from "./context.ts";
import { Dialog } from "./dialog.tsx";
import * as preferences from "./preferences.ts";
import type { State } from "./state.ts";

interface ChoiceProps<T extends string> {
  legend: string;
  name: string;
  value: T;
  options: readonly [T, string][];
  onChange: (value: T) => void;
}

function Choice<T extends string>({ legend, name, value, options, onChange }: ChoiceProps<T>): VNode {
  return (
    <fieldset class="choice">
      <legend>{legend}</legend>
      <div class="segments">
        {options.map(([option, words]) => (
          <label key={option} class="segment">
            <input type="radio" name={name} value={option} checked={option === value} onChange={() => onChange(option)} /><span>{words}</span>
          </label>
        ))}
      </div>
    </fieldset>
  );
}

function Notifications(): VNode {
  const { t } = useSurroundings();
  const [on, setOn] = useState(notificationsWanted);
  const [denied, setDenied] = useState(false);
  const change = async (wanted: boolean): Promise<void> => {
    const granted = await wantNotifications(wanted);
    setOn(granted);
    setDenied(wanted && !granted);
  };
  return (
    <fieldset class="choice">
      <legend>{t("notifications")}</legend>
      <label class="switch">
        <input type="checkbox" role="switch" checked={on} onChange={(event) => void change(event.currentTarget.checked)} /><span>{t("notificationsOn")}</span>
      </label>
      {denied ? <p class="hint" role="status">{t("notificationsDenied")}</p> : null}
    </fieldset>
  );
}

function Person({ state }: { state: State }): VNode {
  const { panel, t } = useSurroundings();
  useEffect(() => void panel.loadPeople(), [panel]);
  const people = state.people.includes(state.person) ? state.people : [state.person, ...state.people];
  return (
    <label class="field"><span>{t("person")}</span>
      <select value={state.person} onChange={(event) => panel.become(event.currentTarget.value)}>
        {people.map((person) => <option key={person} value={person}>{person}</option>)}
      </select>
    </label>
  );
}

export interface SettingsProps {
  state: State;
  onLanguage: () => void;
  onClose: () => void;
}

export function Settings({ state, onLanguage, onClose }: SettingsProps): VNode {
  const { panel, t } = useSurroundings();
  const [theme, setTheme] = useState(preferences.theme);
  const [choice, setChoice] = useState(preferences.languageChoice);
  const chooseTheme = (value: preferences.Theme): void => {
    preferences.setTheme(value);
    setTheme(value);
  };
  const chooseLanguage = (value: preferences.LanguageChoice): void => {
    preferences.setLanguage(value);
    setChoice(value);
    onLanguage();
  };
  return (
    <Dialog title={t("settings")} onClose={onClose}>
      <Choice legend={t("theme")} name="theme" value={theme} onChange={chooseTheme}
        options={[["system", t("themeSystem")], ["light", t("themeLight")], ["dark", t("themeDark")]]} />
      <Choice legend={t("language")} name="language" value={choice} onChange={chooseLanguage}
        options={[["auto", t("languageAuto")], ["en", "English"], ["zh", "中文"]]} />
      <Notifications />
      <Person state={state} />
      <footer class="settings-foot">
        <a href="/about">{t("about")}</a>
        {state.version ? <span class="hint">{t("version", { version: state.version })}</span> : null}
        {panel.signedIn ? <button type="button" class="soft" onClick={() => panel.signOut()}>{t("signOut")}</button> : null}
      </footer>
    </Dialog>
  );
}
