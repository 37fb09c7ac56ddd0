import { useEffect, useState } from 'preact/hooks'
import type { Connected } from './connect-screen.tsx'

/** @param chainId - `eip155:1` */
export type MakesBatches = (chainId: string) => boolean

const NONE: MakesBatches = () => false

/** On which chains the wallet says that it makes several steps one (EIP-5792): its person is asked once. */
export function useBatching({ provider, address }: Connected): MakesBatches {
  const [makesBatches, setMakesBatches] = useState<MakesBatches>(() => NONE)
  useEffect(() => {
    let isLeft = false
    const use = (answer: unknown) => !isLeft && setMakesBatches(() => readCapabilities(answer))
    const ask = async () => provider.request({ method: 'wallet_getCapabilities', params: [address] })
    ask().then(use, () => undefined)
    return () => {
      isLeft = true
    }
  }, [provider, address])
  return makesBatches
}

/** What a wallet says of itself by chain, in hex; `0x0` is every chain. */
export function readCapabilities(answer: unknown): MakesBatches {
  const ofChains = Object.entries((answer ?? {}) as Record<string, { atomic?: { status?: unknown } } | null>)
  const able = ofChains.filter(
    ([id, says]) => /^0x[0-9a-f]+$/i.test(id) && ['supported', 'ready'].includes(String(says?.atomic?.status)),
  )
  const ids = new Set(able.map(([id]) => BigInt(id)))
  return (chainId) => {
    const [, number = ''] = /^eip155:(\d+)$/.exec(chainId) ?? []
    return ids.has(0n) || (number !== '' && ids.has(BigInt(number)))
  }
}
