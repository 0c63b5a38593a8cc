import { IsovecError } from "./error.js";
import type { Host } from "./host.js";

/** Options of a profile. */
export interface ProfileOptions {
  /** The most events to keep; beyond that the oldest are dropped. Default: 65,536, of about 150 bytes each. */
  capacity?: number | undefined;
  /** Whether operators are recorded: a run of a small model has some 60 of them. Default: true. */
  operators?: boolean | undefined;
}

/** A profile as it comes from where the model is. */
export interface RawProfile {
  trace: string;
  /** When it began, in milliseconds since 1970, by the clock that `performance` counts with. */
  began: number;
}

/** An event of a Chrome trace. Times are in microseconds since the profile began. */
export interface TraceEvent {
  name: string;
  /** The stage: `request`, `tokenize`, `queue`, `batch`, `wait`, `run`, `operator`, `copy`, `other`. */
  cat?: string;
  /** `X`: a span, `i`: a moment, `C`: a number that changed, `M`: a name of a track. */
  ph: string;
  ts: number;
  dur?: number;
  pid: number;
  tid: number;
  args: Record<string, unknown>;
}

/** Records an embedder's work until it is finished. */
export class ProfileSession {
  #host: Host | undefined;

  /** @internal */
  constructor(host: Host) {
    this.#host = host;
  }

  /** Ends the recording. Calls that are under way are not in the profile. */
  async finish(): Promise<Profile> {
    const host = this.#host;
    if (!host) throw new IsovecError("Config", "this profile was finished already; begin another one with profile()");
    this.#host = undefined;
    return new Profile(await host.finishProfile());
  }
}

/** The recorded work of an embedder, with times. */
export class Profile {
  /** A Chrome trace as JSON, for https://ui.perfetto.dev, chrome://tracing and `isovec trace`. */
  readonly trace: string;
  #began: number;
  #events: readonly TraceEvent[] | undefined;

  /** @internal */
  constructor({ trace, began }: RawProfile) {
    this.trace = trace;
    this.#began = began;
  }

  /** The events of the trace, by when they began. */
  events(): readonly TraceEvent[] {
    return (this.#events ??= (JSON.parse(this.trace) as { traceEvents: TraceEvent[] }).traceEvents);
  }

  /**
   * Adds the spans to the page's own performance timeline, where the browser's tools and every `PerformanceObserver` show
   * them beside the page's work: measures named `isovec: …`. Gives their number.
   */
  toTimeline(): number {
    const events = this.events();
    const tracks = new Map(events.filter(({ name }) => name === "thread_name").map(({ tid, args }) => [tid, String(args.name)]));
    const spans = events.filter(({ ph }) => ph === "X");
    for (const { name, cat, ts, dur = 0, tid, args } of spans) {
      // A worker counts from another moment than its page. Before its own a timeline has no place.
      const start = Math.max(0, this.#began - performance.timeOrigin + ts / 1000);
      const devtools = { dataType: "track-entry", trackGroup: "isovec", track: tracks.get(tid) ?? String(tid), properties: Object.entries({ stage: cat, ...args }).map(([key, value]) => [key, String(value)]) };
      performance.measure(`isovec: ${name}`, { start, duration: dur / 1000, detail: { devtools } });
    }
    return spans.length;
  }
}
