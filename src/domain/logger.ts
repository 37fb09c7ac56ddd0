type Write = (fields: object, message: string) => void

/** The part of pino's logger that rooms use. Fields never have a secret. */
export interface Logger {
  readonly debug: Write
  readonly info: Write
  readonly warn: Write
  readonly error: Write
}
