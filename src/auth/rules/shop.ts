import { given } from '../../domain/collections.ts'
import { explainPublicText, requireRight } from '../../domain/require-input.ts'
import { readAll } from '../../errors/gather-errors.ts'

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
  /** In pixels. */
  readonly cornerRadius?: number | undefined
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
 * @throws WaybillError INVALID_FIELD
 */
export function parseShop({ name, logo, color, cornerRadius }: ShopInput): Shop | undefined {
  if (name === undefined && logo === undefined && color === undefined && cornerRadius === undefined) return undefined
  return readAll({
    name: () => given(name, (text) => requireRight('name', text, explainPublicText(text, MAX_NAME_LENGTH))),
    logo: () => given(logo, logoOf),
    color: () => given(color, (text) => requireRight('color', text.toLowerCase(), explainColor(text))),
    cornerRadius: () => given(cornerRadius, (pixels) => requireRight('cornerRadius', pixels, explainRadius(pixels))),
  })
}

function explainColor(text: string): string | undefined {
  return /^#[0-9a-f]{6}$/i.test(text) ? undefined : `"${text}" is not # and 6 hexadecimal digits, such as #0a7d4f`
}

function explainRadius(pixels: number): string | undefined {
  const isRadius = Number.isInteger(pixels) && pixels >= 0 && pixels <= MAX_CORNER_RADIUS
  return isRadius ? undefined : `it is not a whole number of pixels from 0 to ${MAX_CORNER_RADIUS}`
}

function logoOf(bytes: Uint8Array): string {
  const start = Buffer.from(bytes).toString('latin1')
  const type = IMAGES.find(([, isOne]) => isOne(start))?.[0]
  const wrong = type === undefined ? 'it is no PNG, JPEG, GIF, WebP or SVG image' : undefined
  const tooLong = bytes.length > MAX_LOGO_BYTES ? `it has more than ${MAX_LOGO_BYTES} bytes` : undefined
  return requireRight('logo', `data:image/${type};base64,${Buffer.from(bytes).toString('base64')}`, tooLong ?? wrong)
}
