import type { Checkout } from '@waybill/client/checkout'
import { useEffect, useState } from 'preact/hooks'

/** Who asks for the payment, as the shop's key says. */
export interface Shop {
  readonly name?: string | undefined
  /** A data URI. */
  readonly logo?: string | undefined
}

/** The shop, whose colour and corners the page takes; undefined until it is known. A page without its shop's name is a page all the same. */
export function useShop(checkout: Checkout): Shop | undefined {
  const [shop, setShop] = useState<Shop>()
  useEffect(() => {
    checkout.getShop({}).then(
      ({ name, logo, color, cornerRadius }) => {
        const { style } = document.documentElement
        if (color !== undefined && /^#[0-9a-f]{6}$/.test(color)) {
          style.setProperty('--shop', color)
          style.setProperty('--on-shop', isLight(color) ? '#000000' : '#ffffff')
        }
        if (cornerRadius !== undefined) style.setProperty('--radius', `${cornerRadius}px`)
        setShop({ name, logo: logo?.startsWith('data:image/') ? logo : undefined })
      },
      () => setShop({}),
    )
  }, [checkout])
  return shop
}

/**
 * Whether black stands out on a colour more than white does.
 *
 * @param color - `#rrggbb`
 * @see https://www.w3.org/TR/WCAG22/#dfn-relative-luminance
 */
export function isLight(color: string): boolean {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
    const part = Number.parseInt(color.slice(at, at + 2), 16) / 255
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179
}
