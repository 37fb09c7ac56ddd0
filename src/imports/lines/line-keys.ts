import { hash } from 'node:crypto'
import { parseUuid } from '../../domain/identifiers.ts'
import type { Line } from './read-lines.ts'

/** How a line compares with the stored rows, as one letter. */
export const LINE_IS_NEW = 'n'
export const LINE_IS_KNOWN = 'k'
export const LINE_IS_OTHER = 'o'

/**
 * The keys of a line before parsing. A row with the hash of a line was written from exactly that line, so an id taken from a wrong place in the
 * line finds no row.
 */
export interface LineKey {
  /** The id that the line seems to have. */
  readonly id: string | undefined
  /** Of all its bytes, in hexadecimal digits; undefined where the line has a fault. */
  readonly hash: string | undefined
}

/**
 * The first byte of a stored hash: the version of the parser. Increment it when a line may now mean something else than when it was
 * imported, so that all lines are parsed again.
 */
const PARSER_VERSION = '01'
const HASH_DIGITS = 32

/** How the id stands in lines of search and export. */
const NAME = Buffer.from('"id":"')
const QUOTE = 0x22
const ID_LENGTH = 36

export function keyOfLine({ content }: Line): LineKey {
  if (content === undefined) return { id: undefined, hash: undefined }
  return { id: idOfLine(content), hash: digitsOf(content) }
}

/** The 16 bytes by which a stored row recognizes the line that it was written from. */
export function lineHashOf(content: Buffer): Buffer {
  return Buffer.from(digitsOf(content), 'hex')
}

function digitsOf(content: Buffer): string {
  return PARSER_VERSION + hash('sha256', content).slice(0, HASH_DIGITS - PARSER_VERSION.length)
}

/** The id that a line seems to have, in lower case; undefined when none stands as search and export write it. */
export function idOfLine(content: Buffer): string | undefined {
  const name = content.indexOf(NAME)
  const at = name + NAME.length
  if (name < 0 || content[at + ID_LENGTH] !== QUOTE) return undefined
  return parseUuid(content.toString('latin1', at, at + ID_LENGTH))
}
