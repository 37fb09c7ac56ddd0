/** What this room asks of a logger; pino satisfies it. */
export interface DemoLogger {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}
