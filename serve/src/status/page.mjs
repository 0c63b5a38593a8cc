// The status page: reads /metrics every two seconds, and shows what changed since the look before.

const EVERY = 2000;

/** The samples of an OpenMetrics page: [{ name, labels, value }]. */
export function parse(page) {
  const samples = [];
  for (const line of page.split("\n")) {
    const found = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/.exec(line);
    if (!found || line.startsWith("#")) continue;
    const labels = {};
    for (const [, name, value] of (found[2] ?? "").matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)) {
      labels[name] = value.replace(/\\(.)/g, (_, c) => (c === "n" ? "\n" : c));
    }
    samples.push({ name: found[1], labels, value: Number(found[3]) });
  }
  return samples;
}

const fits = (sample, name, labels) =>
  sample.name === name && Object.entries(labels).every(([label, value]) => sample.labels[label] === value);

/** The sum of the samples of this name with these labels. */
export function sum(samples, name, labels = {}) {
  return samples.filter((sample) => fits(sample, name, labels)).reduce((all, sample) => all + sample.value, 0);
}

/** A quantile of what a histogram took in between two pages, between the bounds of its bucket; undefined where that was nothing. */
export function quantile(before, now, name, labels, part) {
  const counts = new Map();
  for (const [samples, sign] of [[now, 1], [before, -1]]) {
    for (const sample of samples) {
      if (!fits(sample, `${name}_bucket`, labels)) continue;
      const bound = sample.labels.le === "+Inf" ? Infinity : Number(sample.labels.le);
      counts.set(bound, (counts.get(bound) ?? 0) + sign * sample.value);
    }
  }
  const buckets = [...counts].sort(([a], [b]) => a - b);
  const wanted = part * (buckets.at(-1)?.[1] ?? 0);
  if (!(wanted > 0)) return undefined;
  let [low, below] = [0, 0];
  for (const [bound, count] of buckets) {
    if (count >= wanted) {
      // What is above the last bound is only known to be above it.
      return bound === Infinity ? low : low + ((bound - low) * (wanted - below)) / (count - below);
    }
    [low, below] = [bound, count];
  }
  return low;
}

/** What the page shows of two pages of samples, so many seconds apart. */
export function view(before, now, seconds) {
  const grown = (name, labels) => sum(now, name, labels) - sum(before, name, labels);
  const times = (name, labels) => [0.5, 0.95].map((part) => quantile(before, now, name, labels, part));
  const [p50, p95] = times("isovec_serve_http_answer_seconds", {});
  const requests = {
    "in work": sum(now, "isovec_serve_requests_in_work"),
    "texts in work": sum(now, "isovec_serve_texts_in_work"),
    "bytes in work": sum(now, "isovec_serve_bytes_in_work"),
    "answers a second": grown("isovec_serve_http_answers_total") / seconds,
    "refused a second": grown("isovec_serve_requests_refused_total") / seconds,
    "p50": p50,
    "p95": p95,
    "failed so far": sum(now, "isovec_serve_requests_ended_total", { end: "failed" }),
    "cancelled so far": sum(now, "isovec_serve_requests_ended_total", { end: "cancelled" }),
  };
  const models = now.filter((sample) => sample.name === "isovec_serve_model_info").map(({ labels: { model, task } }) => {
    const [p50, p95] = times("isovec_serve_compute_seconds", { model });
    const batches = grown("isovec_serve_batches_total", { model });
    return {
      model,
      task,
      rate: grown("isovec_serve_texts_total", { model }) / seconds,
      p50,
      p95,
      queued: sum(now, "isovec_serve_queue_texts", { model }),
      batch: batches > 0 ? grown("isovec_serve_batched_texts_total", { model }) / batches : undefined,
    };
  });
  return { requests, models };
}

const whole = (value) => (value === undefined ? "–" : value.toLocaleString("en", { maximumFractionDigits: value < 10 ? 1 : 0 }));
const time = (seconds) => (seconds === undefined ? "–" : `${whole(seconds * 1000)} ms`);

function row(cells) {
  const row = document.createElement("tr");
  row.append(...cells.map((text, at) => {
    const cell = document.createElement(at === 0 ? "th" : "td");
    cell.textContent = text;
    return cell;
  }));
  return row;
}

function start() {
  const at = (id) => document.getElementById(id);
  let [before, since, key] = [undefined, 0, ""];
  at("ask").addEventListener("submit", (event) => {
    event.preventDefault();
    key = at("key").value;
    void look();
  });
  async function look() {
    const headers = key ? { authorization: `Bearer ${key}` } : {};
    const [ready, page] = await Promise.all([fetch("/health/ready"), fetch("/metrics", { headers, cache: "no-store" })]);
    at("ask").hidden = page.status !== 401;
    if (!page.ok) throw new Error(`/metrics answers ${page.status}.`);
    const [now, moment] = [parse(await page.text()), performance.now()];
    at("state").textContent = ready.ok ? "Ready." : `Not ready: ${(await ready.json()).error}.`;
    const { requests, models } = view(before ?? now, now, Math.max(moment - since, 1) / 1000);
    [before, since] = [now, moment];
    at("requests").replaceChildren(...Object.entries(requests).map(([name, value]) =>
      row([name, name.startsWith("p") ? time(value) : whole(value)])));
    at("models").replaceChildren(...models.map((of) =>
      row([of.model, of.task, whole(of.rate), time(of.p50), time(of.p95), whole(of.queued), whole(of.batch)])));
  }
  async function again() {
    try {
      if (!document.hidden) await look();
    } catch (error) {
      at("state").textContent = `The server does not answer: ${error.message}`;
    }
    setTimeout(again, EVERY);
  }
  void again();
}

if (typeof document !== "undefined") start();
