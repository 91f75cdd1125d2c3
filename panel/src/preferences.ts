// How the page looks and which language it speaks: chosen here, kept on the device.
import { chooseLanguage, type Language } from "./i18n.ts";
import { device } from "./storage.ts";

export type Theme = "system" | "light" | "dark";
export type LanguageChoice = "auto" | Language;

export function theme(): Theme {
  const choice = device.get("theme");
  return choice === "light" || choice === "dark" ? choice : "system";
}

export function setTheme(choice: Theme): void {
  device.set("theme", choice === "system" ? null : choice);
  applyTheme();
}

export function applyTheme(): void {
  const choice = theme();
  if (choice === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = choice;
}

export function languageChoice(): LanguageChoice {
  const choice = device.get("language");
  return choice === "en" || choice === "zh" ? choice : "auto";
}

export function setLanguage(choice: LanguageChoice): void {
  device.set("language", choice === "auto" ? null : choice);
}

export function language(): Language {
  const asked = new URLSearchParams(location.search).get("lang");
  return chooseLanguage(device.get("language") ?? asked, navigator.languages);
}

const PERSON = /^[a-z0-9_.-]{1,64}$/;

export function person(): string {
  const asked = new URLSearchParams(location.search).get("person");
  if (asked !== null && PERSON.test(asked)) return asked;
  return "user";
}
