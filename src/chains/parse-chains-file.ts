import { Ajv2020, type ErrorObject } from 'ajv/dist/2020.js'
import { type Address, parseAddress } from '../domain/address.ts'
import { parseFiatCode } from '../domain/currency.ts'
import schema from './chains-file.schema.json' with { type: 'json' }
import type { ChainConfig, ConversionConfig, FinalityConfig, LifiConfig } from './chains-file.ts'

/** A chains file that was read, or everything that is wrong with it. */
export type ParsedChainsFile =
  | { readonly ok: true; readonly chains: readonly ChainConfig[] }
  | { readonly ok: false; readonly faults: readonly string[] }

/** A chain whose shape is right: a {@link ChainConfig}, but for the form of its addresses and what its id decides. */
interface ShapedChain extends Omit<ChainConfig, 'finality'> {
  readonly optional?: boolean
  readonly finality: Omit<FinalityConfig, 'depth'> & Partial<FinalityConfig>
}

interface ShapedFile {
  chains: ShapedChain[]
}

/** By EIP-155 number, as deep as reorgs of these chains have gone and more; Ethereum's is two epochs and a block. */
const FINALITY_DEPTHS = new Map([
  [1, 65],
  [137, 200],
  [42_161, 240],
])
const USUAL_FINALITY_DEPTH = 30

const VARIABLE = /\$\{([A-Za-z_][A-Za-z0-9_]*)\}/g

/**
 * Reads the text of a chains file.
 *
 * @param environment - values for `${NAME}` in RPC URLs; they may hold secrets, so no fault quotes an expanded URL
 */
export function parseChainsFile(
  text: string,
  environment: Readonly<Record<string, string | undefined>>,
): ParsedChainsFile {
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch (error) {
    return { ok: false, faults: [`it is not JSON: ${(error as Error).message}`] }
  }
  const validate = new Ajv2020({
    allErrors: true,
    useDefaults: true,
    strict: true,
    allowUnionTypes: true,
  }).compile<ShapedFile>(schema)
  if (!validate(json)) return { ok: false, faults: (validate.errors ?? []).map(describeShapeFault) }
  const faults: string[] = []
  const read = json.chains.map((chain, index) => readChain(chain, `chains[${index}]`, environment, faults))
  faults.push(...findRepeats(read))
  const chains = read.filter(({ rpcUrls }) => rpcUrls.length > 0)
  if (chains.length === 0) faults.push(describeNoChain(json.chains))
  return faults.length > 0 ? { ok: false, faults } : { ok: true, chains }
}

function describeShapeFault({ instancePath, message = 'is wrong', params, keyword }: ErrorObject): string {
  const where =
    instancePath
      .slice(1)
      .replaceAll(/\/(\d+)/g, '[$1]')
      .replaceAll('/', '.') || 'the file'
  const extra = keyword === 'additionalProperties' ? `: "${params.additionalProperty}"` : ''
  const allowed = keyword === 'enum' ? `: ${(params.allowedValues as string[]).join(', ')}` : ''
  return `${where} ${message}${extra}${allowed}`
}

function describeNoChain(chains: readonly ShapedChain[]): string {
  const names = chains.flatMap(({ rpcUrls: [first = ''] }) => variablesOf(first))
  return `no chain is left, since all are optional: set at least one of the environment variables ${names.join(', ')}`
}

/** An optional chain has no RPC URL left where none of their variables is set. */
function readChain(
  { optional = false, ...chain }: ShapedChain,
  path: string,
  environment: Readonly<Record<string, string | undefined>>,
  faults: string[],
): ChainConfig {
  const address = (value: Address, field: string): Address => {
    const parsed = parseAddress(value)
    if (parsed.ok) return parsed.address
    faults.push(`${path}.${field}: ${parsed.detail}`)
    return value
  }
  const optionalFeed = (feed: Address | undefined, field: string) =>
    feed === undefined ? {} : { usdFeed: address(feed, field) }
  return {
    ...chain,
    rpcUrls: chain.rpcUrls.flatMap((url, i) =>
      optional && variablesOf(url).some((name) => !environment[name])
        ? []
        : readUrl(url, `${path}.rpcUrls[${i}]`, environment, faults),
    ),
    finality: { depth: FINALITY_DEPTHS.get(chain.chainId) ?? USUAL_FINALITY_DEPTH, ...chain.finality },
    multicall: address(chain.multicall, 'multicall'),
    native: { ...chain.native, ...optionalFeed(chain.native.usdFeed, 'native.usdFeed') },
    tokens: chain.tokens.map((token, i) => ({
      ...token,
      address: address(token.address, `tokens[${i}].address`),
      ...optionalFeed(token.usdFeed, `tokens[${i}].usdFeed`),
    })),
    contracts: chain.contracts.map((contract, i) => ({
      ...contract,
      address: address(contract.address, `contracts[${i}].address`),
    })),
    ...(chain.intermediaries && {
      intermediaries: chain.intermediaries.map((each, i) => address(each, `intermediaries[${i}]`)),
    }),
    ...(chain.swapIntermediaries && {
      swapIntermediaries: chain.swapIntermediaries.map((each, i) => address(each, `swapIntermediaries[${i}]`)),
    }),
    ...(chain.executors && { executors: chain.executors.map((each, i) => address(each, `executors[${i}]`)) }),
    ...(chain.lifi && { lifi: readLifi(chain, chain.lifi, `${path}.lifi`, faults) }),
    ...(chain.conversion && { conversion: readConversion(chain, chain.conversion, `${path}.conversion`, faults) }),
    ...(chain.swapV2 && {
      swapV2: {
        ...chain.swapV2,
        router: address(chain.swapV2.router, 'swapV2.router'),
        factory: address(chain.swapV2.factory, 'swapV2.factory'),
        through: chain.swapV2.through.map((symbol, i) =>
          knownToken(chain, symbol, `${path}.swapV2.through[${i}]`, faults),
        ),
      },
    }),
    ...(chain.swapV3 && {
      swapV3: {
        ...chain.swapV3,
        factory: address(chain.swapV3.factory, 'swapV3.factory'),
        quoter: address(chain.swapV3.quoter, 'swapV3.quoter'),
        router: address(chain.swapV3.router, 'swapV3.router'),
      },
    }),
  }
}

function readLifi({ executors = [] }: ShapedChain, lifi: LifiConfig, path: string, faults: string[]): LifiConfig {
  const address = (value: Address, field: string): Address => {
    const parsed = parseAddress(value)
    if (parsed.ok) return parsed.address
    faults.push(`${path}.${field}: ${parsed.detail}`)
    return value
  }
  const { executor, spokePool, feeContracts } = lifi
  const isFollowed = executor === undefined || executors.some((each) => each.toLowerCase() === executor.toLowerCase())
  if (!isFollowed)
    faults.push(
      `${path}.executor: ${executor} is not among executors, so its payments would not be known as CROSSCHAIN`,
    )
  return {
    diamond: address(lifi.diamond, 'diamond'),
    ...(feeContracts && { feeContracts: feeContracts.map((each, i) => address(each, `feeContracts[${i}]`)) }),
    receiverAcrossV4: address(lifi.receiverAcrossV4, 'receiverAcrossV4'),
    ...(executor && { executor: address(executor, 'executor') }),
    ...(spokePool && { spokePool: address(spokePool, 'spokePool') }),
  }
}

function readConversion(
  chain: ShapedChain,
  conversion: ConversionConfig,
  path: string,
  faults: string[],
): ConversionConfig {
  const address = (value: string, field: string): Address => {
    const parsed = parseAddress(value)
    if (!parsed.ok) faults.push(`${path}.${field}: ${parsed.detail}`)
    return parsed.ok ? parsed.address : (value as Address)
  }
  const fiat = (code: string, field: string): string => {
    if (parseFiatCode(code) === undefined) faults.push(`${path}.${field}: "${code}" is no ISO 4217 code`)
    return code
  }
  faults.push(
    ...repeated(conversion.paths.map(({ from, token }) => `the conversion of ${from} into ${token} on ${chain.name}`)),
  )
  return {
    path: address(conversion.path, 'path'),
    paths: conversion.paths.map((each, i) => ({
      ...each,
      from: fiat(each.from, `paths[${i}].from`),
      token: knownToken(chain, each.token, `${path}.paths[${i}].token`, faults),
      via: each.via.map((hop, j) => {
        const field = `paths[${i}].via[${j}]`
        return hop.startsWith('0x') ? address(hop, field) : fiat(hop, field)
      }),
    })),
  }
}

function knownToken({ name, native, tokens }: ShapedChain, symbol: string, path: string, faults: string[]): string {
  const isKnown = [native, ...tokens].some((token) => token.symbol === symbol)
  if (!isKnown) faults.push(`${path}: "${symbol}" is no token of ${name}`)
  return symbol
}

function variablesOf(url: string): string[] {
  return [...url.matchAll(VARIABLE)].flatMap(([, name]) => name ?? [])
}

function readUrl(
  template: string,
  path: string,
  environment: Readonly<Record<string, string | undefined>>,
  faults: string[],
): string {
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
