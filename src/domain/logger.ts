type Write = (fields: object, message: string) => void

/** The part of a pino logger that the rooms use. Fields never hold a secret. */
export interface Logger {
  readonly debug: Write
  readonly info: Write
  readonly warn: Write
  readonly error: Write
}

/** Says nothing. */
export const silentLogger: Logger = { debug() {}, info() {}, warn() {}, error() {} }
