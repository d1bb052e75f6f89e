export interface StopMatcher {
  push(text: string): { safe: string; matched: string | null };
  flush(): string;
}
export function createStopMatcher(stops: readonly string[]): StopMatcher {
  let held = '';
  return {
    push(text) {
      held += text;
      let at = -1;
      let matched: string | null = null;
      for (const stop of stops) {
        const place = held.indexOf(stop);
        if (place >= 0 && (at < 0 || place < at)) [at, matched] = [place, stop];
      }
      if (matched !== null) {
        const safe = held.slice(0, at);
        held = '';
        return { safe, matched };
      }
      let keep = 0;
      for (const stop of stops)
        for (let n = Math.min(stop.length - 1, held.length); n > keep; n--)
          if (held.endsWith(stop.slice(0, n))) keep = n;
      const safe = held.slice(0, held.length - keep);
      held = held.slice(held.length - keep);
      return { safe, matched: null };
    },
    flush() {
      const text = held;
      held = '';
      return text;
    },
  };
}
