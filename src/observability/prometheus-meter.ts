import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import type { Labels, Meter, Metric, Sample } from '../domain/telemetry/telemetry.ts'
import { within } from '../domain/within.ts'

/** What reads metrics at an export, and where it puts them. */
interface Observer {
  readonly instruments: ReadonlyMap<string, Counter | Gauge>
  readonly read: () => Promise<readonly Sample[]> | readonly Sample[]
}

/** What cannot be read within this time is left out of an export, in milliseconds. Prometheus waits 10 s for all. */
const READ_WITHIN_MS = 2_000

/**
 * How many values of a histogram wait until the library counts them in a row. It finds the place of each by a text of all labels, which takes ten
 * times as long between other work (bench/README.md).
 */
const MAX_WAITING = 256

/** How often the lag of the event loop is measured, in milliseconds. Each time wakes the process. */
const LAG_EVERY_MS = 50

/** Makes a meter on the library, with the library's own metrics of the process: memory, event loop, descriptors. */
export function createPrometheusMeter() {
  const registry = new Registry()
  const registers = [registry]
  const observers: Observer[] = []
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: LAG_EVERY_MS })
  const termsOf = ({ name, help, labels = [] }: Metric) => ({ name, help, labelNames: [...labels], registers })

  const meter: Meter = {
    counter(metric) {
      const counter = new Counter(termsOf(metric))
      return (labels) => counter.inc(labels)
    },
    histogram(metric) {
      // Two lists that are filled again and again, since an object for each value would outlive a collection of young objects.
      const labelsWaiting: Labels[] = []
      const valuesWaiting: number[] = []
      let waiting = 0
      const collect = () => {
        for (let at = 0; at < waiting; at++) histogram.observe(labelsWaiting[at] ?? {}, valuesWaiting[at] ?? 0)
        waiting = 0
      }
      const histogram = new Histogram({ ...termsOf(metric), buckets: [...metric.buckets], collect })
      return (labels, value) => {
        labelsWaiting[waiting] = labels
        valuesWaiting[waiting] = value
        waiting += 1
        if (waiting === MAX_WAITING) collect()
      }
    },
    observe(metrics, read) {
      const instruments = metrics.map((metric) => {
        const terms = termsOf(metric)
        const instrument = metric.name.endsWith('_total') ? new Counter(terms) : new Gauge(terms)
        clear(instrument)
        return [metric.name, instrument] as const
      })
      observers.push({ instruments: new Map(instruments), read })
    },
  }

  const refreshed = () => Promise.all(observers.map(refresh))
  return {
    meter,
    contentType: registry.contentType,
    /** Reads what is read at an export, and writes all metrics in Prometheus' text format. */
    write: async () => refreshed().then(() => registry.metrics()),
    /** The same as values. */
    read: async () => refreshed().then(() => registry.getMetricsAsJSON()),
  }
}

async function refresh({ instruments, read }: Observer): Promise<void> {
  const samples = await within(READ_WITHIN_MS, Promise.resolve().then(read), () => []).catch(() => [])
  for (const instrument of instruments.values()) clear(instrument)
  for (const [name, value, labels = {}] of samples) instruments.get(name)?.inc(labels, value)
}

/** The library gives a metric without labels the value 0, when it is made and when it is reset: as if 0 had been read. */
function clear(instrument: Counter | Gauge): void {
  instrument.reset()
  instrument.remove({})
}
