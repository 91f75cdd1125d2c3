// What every view needs and what hardly ever changes. The state itself is handed down, so that a line that is not touched
// by a change is not drawn again.
import { Component, createContext, h, type ComponentChild, type FunctionComponent } from "preact";
import { useContext, useEffect, useState } from "preact/hooks";
import { translator, type Language, type Translate } from "./i18n.ts";
import type { Panel } from "./panel.ts";
import type { Millis } from "./types.ts";

export interface Surroundings {
  panel: Panel;
  language: Language;
  t: Translate;
}

export const SurroundingsContext = createContext<Surroundings | undefined>(undefined);

export function surround(panel: Panel, language: Language): Surroundings {
  return { panel, language, t: translator(language) };
}

export function useSurroundings(): Surroundings {
  const surroundings = useContext(SurroundingsContext);
  if (!surroundings) throw new Error("a view stands outside of the panel");
  return surroundings;
}

const TICK = 1000;

/** The server's time, anew with every second of it; stands still while `running` is false. */
export function useNow(running = true): Millis {
  const { panel } = useSurroundings();
  const [now, setNow] = useState(() => panel.now());
  useEffect(() => {
    if (!running) return undefined;
    let timer: ReturnType<typeof setTimeout>;
    const tick = (): void => {
      setNow(panel.now());
      timer = setTimeout(tick, TICK - (panel.now() % TICK) + 5);
    };
    tick();
    return () => clearTimeout(timer);
  }, [panel, running]);
  return now;
}

function differ<P extends object>(a: P, b: P): boolean {
  const names = new Set([...Object.keys(a), ...Object.keys(b)]) as Set<keyof P>;
  return [...names].some((name) => a[name] !== b[name]);
}

/** A view that is drawn again only if its properties are others than before. */
export function pure<P extends object>(View: FunctionComponent<P>): new (props: P) => Component<P> {
  return class extends Component<P> {
    override shouldComponentUpdate(next: Readonly<P>): boolean {
      return differ<object>(this.props, next);
    }
    override render(): ComponentChild {
      return h(View as FunctionComponent<object>, this.props);
    }
  };
}
