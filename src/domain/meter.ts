/** What a figure is about: `{ chain: 'BASE', node: 'rpc.example', method: 'eth_getLogs' }`. Values are few and never secret. */
export type MeterLabels = Readonly<Record<string, string>>

/**
 * Takes the figures that operators watch. A room that has figures is given a meter and knows nothing of where they go. Nothing exports them
 * yet, so a service has the silent one.
 *
 * Names are those of Prometheus: `waybill_node_calls_total`, with the unit in the name.
 */
export interface Meter {
  /** Adds to a counter, which only grows. @param by - default 1 */
  count(name: string, labels: MeterLabels, by?: number): void
  /** Sets a gauge. @param value - undefined: the figure is not known any more, and is not shown */
  set(name: string, labels: MeterLabels, value: number | undefined): void
}

/** Drops all figures. */
export const silentMeter: Meter = { count() {}, set() {} }
