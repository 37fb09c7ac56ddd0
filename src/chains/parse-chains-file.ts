import { Ajv2020, type ErrorObject } from 'ajv/dist/2020.js'
import { parseAddress } from '../domain/address.ts'
import { parseFiatCode } from '../domain/currency.ts'
import { parseDateBound } from '../domain/date-bound.ts'
import schema from './chains-file.schema.json' with { type: 'json' }
import type { ChainConfig, ConversionConfig, FinalityConfig, LifiConfig, NodeLimitsConfig } from './chains-file.ts'
import { type Explorer, explainTemplate } from './explorer.ts'
import { l1Fees } from './l1-fee.ts'

/** The chains of a file, or everything that is wrong with it. */
type ParsedChainsFile =
  | { readonly ok: true; readonly chains: readonly ChainConfig[] }
  | { readonly ok: false; readonly faults: readonly string[] }

/** A chain that fits the schema: a {@link ChainConfig} whose addresses and dates are not parsed yet, and without the default depth of finality. */
interface RawChain extends Omit<ChainConfig, 'finality' | 'rpcUrls' | 'nodeLimits' | 'since' | 'l1Fee'> {
  readonly rpcUrls: readonly (string | RawNode)[]
  readonly optional?: boolean
  readonly since?: string
  readonly l1Fee?: keyof typeof l1Fees
  readonly finality: Omit<FinalityConfig, 'depth'> & Partial<FinalityConfig>
}

interface RawNode extends NodeLimitsConfig {
  readonly url: string
}

/** Values of variables, by name. */
type Environment = Readonly<Record<string, string | undefined>>

/** By EIP-155 number. Deeper than any reorg that these chains have had; for Ethereum, two epochs and a block. */
const FINALITY_DEPTHS = new Map([
  [1, 65],
  [137, 200],
  [42_161, 240],
])
const DEFAULT_FINALITY_DEPTH = 30

const VARIABLE = /\$\{([A-Za-z_][A-Za-z0-9_]*)\}/g

/**
 * Parses a chains file.
 *
 * @param environment - values for `${NAME}` in RPC URLs; they may be secret, so no fault quotes an expanded URL
 */
export function parseChainsFile(text: string, environment: Environment): ParsedChainsFile {
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch (error) {
    return { ok: false, faults: [`it is not JSON: ${(error as Error).message}`] }
  }
  const ajv = new Ajv2020({ allErrors: true, useDefaults: true, strict: true, allowUnionTypes: true })
  const validate = ajv.compile<{ chains: RawChain[] }>(schema)
  if (!validate(json)) return { ok: false, faults: (validate.errors ?? []).map(describeFormFault) }
  const faults: string[] = []
  const read = json.chains.map((chain, index) => readChain(chain, `chains[${index}]`, environment, faults))
  faults.push(...findRepeats(read))
  const chains = read.filter(({ rpcUrls }) => rpcUrls.length > 0)
  if (chains.length === 0) faults.push(describeNoChain(json.chains))
  return faults.length > 0 ? { ok: false, faults } : { ok: true, chains }
}

function describeFormFault({ instancePath, message = 'is wrong', params, keyword }: ErrorObject): string {
  const where =
    instancePath
      .slice(1)
      .replaceAll(/\/(\d+)/g, '[$1]')
      .replaceAll('/', '.') || 'the file'
  const extra = keyword === 'additionalProperties' ? `: "${params.additionalProperty}"` : ''
  const allowed = keyword === 'enum' ? `: ${(params.allowedValues as string[]).join(', ')}` : ''
  return `${where} ${message}${extra}${allowed}`
}

function describeNoChain(chains: readonly RawChain[]): string {
  const names = chains.flatMap(({ rpcUrls: [first = ''] }) => variablesOf(urlOf(first)))
  return `no chain is left, since all are optional: set at least one of the environment variables ${names.join(', ')}`
}

/** Reads the addresses and URLs of a chain. An optional chain is left without the URLs whose variables are not set. */
function readChain(
  { optional = false, ...raw }: RawChain,
  path: string,
  environment: Environment,
  faults: string[],
): ChainConfig {
  const chain = readAddresses(raw, path, faults)
  if (raw.explorer !== undefined) checkExplorer(raw.explorer, `${path}.explorer`, faults)
  if (raw.lifi !== undefined) checkExecutor(raw, raw.lifi, `${path}.lifi`, faults)
  if (raw.conversion !== undefined) checkConversion(raw, raw.conversion, `${path}.conversion`, faults)
  for (const [i, symbol] of (raw.swapV2?.through ?? []).entries()) {
    checkToken(raw, symbol, `${path}.swapV2.through[${i}]`, faults)
  }
  return {
    ...chain,
    ...readNodes({ ...raw, optional }, path, environment, faults),
    l1Fee: chain.l1Fee && l1Fees[chain.l1Fee],
    since: chain.since === undefined ? undefined : readSince(chain, chain.since, `${path}.since`, faults),
    finality: { depth: FINALITY_DEPTHS.get(chain.chainId) ?? DEFAULT_FINALITY_DEPTH, ...chain.finality },
  }
}

const ADDRESS_FORM = /^0x[0-9a-f]{40}$/i

/** A copy in which every address is canonical. What is wrong with one is added to the faults. */
function readAddresses<T>(value: T, path: string, faults: string[]): T {
  if (typeof value === 'string') {
    const parsed = ADDRESS_FORM.test(value) ? parseAddress(value) : undefined
    if (parsed?.ok === false) faults.push(`${path}: ${parsed.detail}`)
    return parsed?.ok ? (parsed.address as string as T) : value
  }
  if (Array.isArray(value)) return value.map((inner, i) => readAddresses(inner, `${path}[${i}]`, faults)) as T
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).map(([name, inner]) => [name, readAddresses(inner, `${path}.${name}`, faults)])
  return Object.fromEntries(entries) as T
}

function checkExplorer(explorer: Explorer, path: string, faults: string[]): void {
  for (const [name, placeholder] of [
    ['transaction', '{hash}'],
    ['address', '{address}'],
  ] as const) {
    const fault = explainTemplate(explorer[name], placeholder)
    if (fault !== undefined) faults.push(`${path}.${name}: ${fault}`)
  }
}

function readSince({ startBlock }: RawChain, since: string, path: string, faults: string[]): Date | undefined {
  if (startBlock !== undefined) {
    faults.push(`${path}: "${since}" is given beside startBlock ${startBlock}: leave out one of the two`)
    return undefined
  }
  const parsed = parseDateBound(since)
  if (parsed.ok) return new Date(parsed.firstMs)
  faults.push(`${path}: "${since}" is no date: ${parsed.detail}. Give 2026-01-31 or 2026-01-31T12:00:00Z`)
  return undefined
}

function checkExecutor({ executors = [] }: RawChain, lifi: LifiConfig, path: string, faults: string[]): void {
  const { executor } = lifi
  if (executor === undefined || executors.some((each) => each.toLowerCase() === executor.toLowerCase())) return
  faults.push(`${path}.executor: ${executor} is not among executors, so its payments would not be known as CROSSCHAIN`)
}

function checkConversion(chain: RawChain, { paths }: ConversionConfig, path: string, faults: string[]): void {
  const checkFiat = (code: string, field: string) => {
    if (parseFiatCode(code) === undefined) faults.push(`${path}.${field}: "${code}" is not an ISO 4217 code`)
  }
  faults.push(...repeated(paths.map(({ from, token }) => `the conversion of ${from} into ${token} on ${chain.name}`)))
  for (const [i, { from, token, via }] of paths.entries()) {
    checkFiat(from, `paths[${i}].from`)
    checkToken(chain, token, `${path}.paths[${i}].token`, faults)
    for (const [j, hop] of via.entries()) if (!hop.startsWith('0x')) checkFiat(hop, `paths[${i}].via[${j}]`)
  }
}

function checkToken({ name, native, tokens }: RawChain, symbol: string, path: string, faults: string[]): void {
  const isKnown = [native, ...tokens].some((token) => token.symbol === symbol)
  if (!isKnown) faults.push(`${path}: "${symbol}" is not a token of ${name}`)
}

function variablesOf(url: string): string[] {
  return [...url.matchAll(VARIABLE)].flatMap(([, name]) => name ?? [])
}

function urlOf(node: string | RawNode): string {
  return typeof node === 'string' ? node : node.url
}

/** Reads the URLs of a chain, and what the file states of each. */
function readNodes({ rpcUrls, optional }: RawChain, path: string, environment: Environment, faults: string[]) {
  const nodes = rpcUrls.flatMap((node, i) => {
    const isLeftOut = optional && variablesOf(urlOf(node)).some((name) => !environment[name])
    if (isLeftOut) return []
    const { url, ...limits } = typeof node === 'string' ? { url: node } : node
    return { url: readUrl(url, `${path}.rpcUrls[${i}]`, environment, faults), limits }
  })
  const limited = nodes.filter(({ limits }) => Object.keys(limits).length > 0)
  return {
    rpcUrls: nodes.map(({ url }) => url),
    ...(limited.length > 0 && { nodeLimits: Object.fromEntries(limited.map(({ url, limits }) => [url, limits])) }),
  }
}

function readUrl(template: string, path: string, environment: Environment, faults: string[]): string {
  const url = template.replaceAll(VARIABLE, (whole, name: string) => {
    const value = environment[name]
    if (value === undefined || value === '') faults.push(`${path}: the environment variable ${name} is not set`)
    return value ?? whole
  })
  const protocol = URL.parse(url)?.protocol
  if (protocol !== 'http:' && protocol !== 'https:') faults.push(`${path}: "${template}" is not an http or https URL`)
  return url
}

function findRepeats(chains: readonly ChainConfig[]): string[] {
  return [
    ...repeated(chains.map(({ name }) => `the chain name ${name}`)),
    ...repeated(chains.map(({ chainId }) => `the chain id ${chainId}`)),
    ...chains.flatMap(({ name, native, tokens, contracts }) => [
      ...repeated([native, ...tokens].map(({ symbol }) => `the symbol ${symbol.toUpperCase()} on ${name}`)),
      ...repeated(tokens.map(({ address }) => `the token ${address} on ${name}`)),
      ...repeated(contracts.map(({ address }) => `the contract ${address} on ${name}`)),
    ]),
  ]
}

function repeated(names: readonly string[]): string[] {
  const seen = new Set<string>()
  const twice = new Set<string>()
  for (const name of names) (seen.has(name) ? twice : seen).add(name)
  return [...twice].map((name) => `${name} is given twice`)
}
