import { explainPublicText } from '../../domain/require-input.ts'

/** Who asks payers for money, and the styles of the checkout page of a publishable key. All of it is public. */
export interface Shop {
  readonly name?: string | undefined
  /** A data URI of an image, because the page loads nothing from other hosts. */
  readonly logo?: string | undefined
  /** `#` and 6 digits in lower case. */
  readonly color?: string | undefined
  /** In pixels. */
  readonly cornerRadius?: number | undefined
}

const MAX_NAME_LENGTH = 80
export const MAX_LOGO_BYTES = 16_384
const MAX_CORNER_RADIUS = 32

/** The parts of a shop as somebody writes them. */
export interface ShopInput {
  readonly name?: string | undefined
  /** The bytes of an image file. */
  readonly logo?: Uint8Array | undefined
  readonly color?: string | undefined
  readonly radius?: string | undefined
}

/** How the files of images begin, that every browser shows. */
const IMAGES: readonly (readonly [type: string, isOne: (start: string) => boolean])[] = [
  ['png', (start) => start.startsWith('\x89PNG\r\n\x1a\n')],
  ['jpeg', (start) => start.startsWith('\xff\xd8\xff')],
  ['gif', (start) => /^GIF8[79]a/.test(start)],
  ['webp', (start) => start.startsWith('RIFF') && start.slice(8, 12) === 'WEBP'],
  [
    'svg+xml',
    (start) => /^\s*(?:<\?xml[^>]*>\s*)?(?:<!--[^]*?-->\s*)*(?:<!DOCTYPE svg[^>]*>\s*)?<svg[\s>]/.test(start),
  ],
]

/**
 * Reads what a shop is to show.
 *
 * @returns undefined where nothing was given
 * @throws RangeError that names the part and says what is wrong with it
 */
export function parseShop({ name, logo, color, radius }: ShopInput): Shop | undefined {
  if (name === undefined && logo === undefined && color === undefined && radius === undefined) return undefined
  const detail = name === undefined ? undefined : explainPublicText(name, MAX_NAME_LENGTH)
  if (detail !== undefined) throw new RangeError(`name "${name}": ${detail}`)
  if (color !== undefined && !/^#[0-9a-f]{6}$/i.test(color)) {
    throw new RangeError(`color "${color}": use # and 6 hexadecimal digits, such as #0a7d4f`)
  }
  const cornerRadius = radius === undefined ? undefined : Number(/^\d{1,2}$/.exec(radius)?.[0])
  if (cornerRadius !== undefined && !(cornerRadius <= MAX_CORNER_RADIUS)) {
    throw new RangeError(`radius "${radius}": use a whole number of pixels from 0 to ${MAX_CORNER_RADIUS}`)
  }
  return { name, logo: logo && logoOf(logo), color: color?.toLowerCase(), cornerRadius }
}

function logoOf(bytes: Uint8Array): string {
  if (bytes.length > MAX_LOGO_BYTES) {
    throw new RangeError(`logo: it has more than ${MAX_LOGO_BYTES} bytes`)
  }
  const start = Buffer.from(bytes).toString('latin1')
  const type = IMAGES.find(([, isOne]) => isOne(start))?.[0]
  if (type === undefined) throw new RangeError('logo: it is no PNG, JPEG, GIF, WebP or SVG image')
  return `data:image/${type};base64,${Buffer.from(bytes).toString('base64')}`
}
