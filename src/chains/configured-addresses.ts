import { type Address, parseAddress } from '../domain/address.ts'
import type { ReceiverChain } from '../domain/require-input.ts'
import type { ChainDirectory } from './chain-directory.ts'
import type { ChainConfig } from './chains-file.ts'

/**
 * Every address in a chain's configuration, with a description: `the token USDC`, `ERC20_FEE_PROXY 0.2.0`, `swapV2.router`. None of them is a
 * wallet, so money that is sent there is lost.
 *
 * It searches all texts of the configuration, so that it finds the addresses of fields that are added later. The result is kept, because an
 * import asks for each of its lines.
 */
export function configuredAddresses(chain: ChainConfig): ReadonlyMap<Address, string> {
  const known = addressesByChain.get(chain)
  if (known !== undefined) return known
  const found = new Map<Address, string>()
  collect(chain, '', found)
  addressesByChain.set(chain, found)
  return found
}

/** A chain on which somebody is to be paid. @param network - canonical name; it need not be configured */
export function receiverChain(network: string, chains: ChainDirectory): ReceiverChain {
  const config = chains.config(network)
  const configured = config === undefined ? new Map<Address, string>() : configuredAddresses(config)
  return { name: network, family: chains.familyOf(network), configured }
}

const addressesByChain = new WeakMap<ChainConfig, ReadonlyMap<Address, string>>()

function collect(value: unknown, path: string, known: Map<Address, string>): void {
  if (typeof value === 'string') {
    const parsed = value.startsWith('0x') && value.length === 42 ? parseAddress(value) : undefined
    if (parsed?.ok === true && !known.has(parsed.address)) known.set(parsed.address, path)
    return
  }
  if (typeof value !== 'object' || value === null) return
  for (const [name, inner] of Object.entries(value)) {
    collect(inner, name === 'address' ? describe(value, path) : join(path, name), known)
  }
}

/** Describes an entry that has an address. */
function describe(entry: object, path: string): string {
  const { kind, version, symbol } = entry as Readonly<Record<string, unknown>>
  if (typeof symbol === 'string') return `the token ${symbol}`
  return typeof kind === 'string' ? [kind, version].filter((word) => typeof word === 'string').join(' ') : path
}

function join(path: string, name: string): string {
  if (/^\d+$/.test(name)) return path
  return path === '' ? name : `${path}.${name}`
}
