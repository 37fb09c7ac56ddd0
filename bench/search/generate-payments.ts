/**
 * Payments as a large payments company has them, made by the database itself: every value follows from the number of the row and the
 * seed, so that the same seed gives the same payments however the rows are divided among connections.
 */

/** What the payments are made from. */
export interface GeneratorTerms {
  /** Of all payments of all accounts. */
  readonly rows: number
  readonly seed: number
}

/** Raised when the same terms come to give other payments. */
export const GENERATOR_VERSION = 1

/** The destinations, the most used first; the last one was given up and stands in the oldest quarter alone. */
export const NETWORKS = [
  'BASE',
  'POLYGON',
  'ARBITRUM',
  'ETHEREUM',
  'OPTIMISM',
  'BSC',
  'AVALANCHE',
  'LINEA',
  'GNOSIS',
  'FANTOM',
] as const
export const RETIRED_NETWORK = 'FANTOM'
/** Payments come from there and never go there. */
export const SOURCE_ONLY_NETWORK = 'MANTLE'
export const CHAIN_IDS = [8453, 137, 42161, 1, 10, 56, 43114, 59144, 100, 250]
export const NATIVES = ['ETH', 'POL', 'ETH', 'ETH', 'ETH', 'BNB', 'AVAX', 'ETH', 'XDAI', 'FTM']

/** Payment currencies, the most used first, with a price in US dollars. Each is on every network. */
const PRICES = {
  USDC: 1,
  USDT: 0.9997,
  DAI: 1.0002,
  ETH: 3127.45,
  WETH: 3127.45,
  WBTC: 67203.1,
  POL: 0.4312,
  BNB: 587.2,
  AVAX: 27.61,
  EURC: 1.0821,
  FRAX: 0.9989,
  LINK: 14.92,
  UNI: 7.81,
  AAVE: 151.4,
  ARB: 0.7712,
  OP: 1.61,
  MKR: 2411,
  CRV: 0.3411,
  LDO: 1.21,
  GHO: 0.9971,
  PYUSD: 0.9998,
  TUSD: 0.9984,
  USDP: 1.0001,
  LUSD: 1.0012,
  SUSD: 0.9931,
  CELO: 0.6112,
  GNO: 182.5,
  SNX: 1.47,
  COMP: 48.1,
  GRT: 0.1611,
  BAT: 0.1923,
  ENS: 19.72,
  APE: 0.7312,
  SAND: 0.2611,
  MANA: 0.2913,
  GALA: 0.0213,
  INCH: 0.2512,
  ZRX: 0.3021,
  YFI: 5123,
  DOGE: 0.1123,
}
const SYMBOLS = Object.keys(PRICES)
/** The rest is known from imports alone, and of no known price. */
export const CONFIGURED_SYMBOLS = SYMBOLS.slice(0, 32)

const FIAT = { USD: 1, EUR: 1.0821, GBP: 1.2713, CHF: 1.1204, JPY: 0.0067, BRL: 0.1902 }
export const FIAT_CODES = Object.keys(FIAT)

/** All accounts; 1, 2 and 3 have 30, 15 and 8 of a hundred payments, the others share the rest by Zipf. */
const ACCOUNTS = 5_003
/** The reference that one of twenty payments bears. */
export const SHARED_REFERENCE = 'subscription'
export const START = '2023-06-01T00:00:00Z'
const SPAN_SEC = 3 * 365 * 86_400

/** Payments of one transaction, where it has more than one. */
const BATCH = 20

/** Makes the accounts. */
export const INSERT_ACCOUNTS = `insert into accounts (id, name) overriding system value
  select n, 'account-' || n from generate_series(1, ${ACCOUNTS}) n on conflict do nothing`

/** Inserts the payments with the numbers from `first` up to, but not including, `end`. */
export function insertPaymentsSql({ rows, seed }: GeneratorTerms, first: number, end: number): string {
  /** From 0 up to 1, the same for the same key; each salt is another draw. */
  const draw = (key: string, salt: number) =>
    `(((hashint8extended(${key}, ${seed * 1_000 + salt}) >> 11) & 9007199254740991)::float8 / 9007199254740992)`
  const hash = (...parts: string[]) => `sha256(int4send(${seed}) || ${parts.join(' || ')})`
  const address = (kind: number, account: string, number: string) =>
    `('\\x01'::bytea || substr(${hash(`int4send(${kind})`, `int4send(${account})`, `int8send(${number})`)}, 1, 20))`
  const one = (values: readonly (string | number)[], at: string) => `(${arrayOf(values)})[${at}]`
  const zipf = (key: string, salt: number, most: number) =>
    `least(floor(exp(${draw(key, salt)} * ln(${most + 1}.0::float8)))::int, ${most})`
  const iso = (time: string) => `to_char(${time} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS".000Z"')`

  // Each level uses what the one before has drawn; the offsets keep PostgreSQL from drawing it again for every use.
  return `
insert into payments (account_id, id, status, type, final, imported, detected, event_index, block_number, confirmations, timestamp,
  updated_at, network, source_network, chain_id, currency, currency_symbol, invoice_currency, amount, amount_in_usd, invoice_amount,
  refunded_amount, tx_hash, source_tx_hash, payer, payee, initiator, token_address, request_id, payment_reference, reference, fees,
  exchange_rates, gas, refunds, status_history)
select account_id, id, status, type, status <> 1, not detected, detected,
  case when not hashless then case when batched then n % ${BATCH} else floor(${draw('n', 20)} * 3) end end,
  zi * 10000000 + seconds / 2, case when status <> 1 then 64 end, at, at + interval '60.123 seconds', network, source_network,
  'eip155:' || ${one(CHAIN_IDS, 'zi')}, currency, symbol, invoice_currency, amount, usd, invoice_amount,
  case when status = 4 then amount else 0 end, tx_hash,
  case when type = 3 then ${hash('int4send(7)', 'int8send(k)')} when source_network is not null then tx_hash end,
  payer, payee, payer, case when symbol <> native then ${address(4, 'zi', 'zc::bigint')} end,
  case when has_request then '\\x01'::bytea || request_hash end, case when has_request then substr(request_hash, 3, 8) end,
  case when ur < 0.55 then 'INV-' || n when ur < 0.65 then 'order-' || account_id || '-' || n / 500
    when ur < 0.70 then '${SHARED_REFERENCE}' when ur < 0.72 then 'campaign-' || floor((ur - 0.70) * 5000) end,
  case when uf < 0.4 then format('[{"type":"PLATFORM","stage":"SENDING","amount":"%s","currency":"%s","amountInUsd":"%s","receiverAddress":"0x%s","network":"%s"}]',
      trim_scale(round(amount * 0.005, 6)), currency, trim_scale(round(coalesce(usd, 0) * 0.005, 6)),
      encode(substr(${hash('int4send(8)', 'int4send(account_id)')}, 1, 20), 'hex'), network)
    when type = 3 then format('[{"type":"CROSSCHAIN","stage":"PROXYING","provider":"lifi","amount":"%s","currency":"%s"}]',
      trim_scale(round(amount * 0.003, 6)), currency)
    else '[]' end::jsonb,
  case when usd is null then '[]' else
    format('[{"from":"%s","to":"USD","rate":"%s","source":"feed","at":"%s"},{"from":"%s-%s","to":"USD","rate":"%s","source":"feed","at":"%s"}]',
      currency, price, at_text, native, network, native_price, at_text) end::jsonb,
  format('{"used":"%s","price":"%s","amount":"%s","currency":"%s-%s","amountInUsd":"%s"}', gas_used, gas_price, gas_used * gas_price,
    native, network, round(gas_used * gas_price * native_price, 6))::jsonb,
  case when status = 4 then format('[{"amount":"%s","currency":"%s","network":"%s","txHash":"0x%s","eventIndex":0,"timestamp":"%s"}]',
    amount, currency, network, encode(${hash('int4send(9)', 'int8send(n)')}, 'hex'), ${iso("(at + interval '1 day')")}) else '[]' end::jsonb,
  case when status = 1 then format('[{"status":"PENDING","at":"%s"}]', at_text)
    else format('[{"status":"PENDING","at":"%s"},{"status":"%s","at":"%s"}]', at_text,
      ${one(['PENDING', 'PARTIAL', 'CONFIRMED', 'REFUNDED', 'FAILED'], 'status')}, ${iso("(at + interval '1 minute')")}) end::jsonb
from (
  select *, symbol || '-' || network as currency, ${iso('at')} as at_text,
    case when type = 2 then fiat when ${draw('n', 21)} < 0.9 then symbol || '-' || network end as invoice_currency,
    case when type = 2 then fiat_amount when ${draw('n', 21)} < 0.9 then amount end as invoice_amount,
    case when zc > ${CONFIGURED_SYMBOLS.length} or ${draw('n', 22)} < 0.03 then null
      when type = 2 then trim_scale(round(fiat_amount * fx, 8)) else trim_scale(round(amount * price, 8)) end as usd
  from (
    select *, trim_scale(greatest(round((worth / price)::numeric, places), 10::numeric ^ -places)) as amount,
      trim_scale(round((worth / fx)::numeric, 2)) as fiat_amount
    from (
      select *, ${one(NETWORKS, 'zi')} as network, ${one(NATIVES, 'zi')} as native, ${one(SYMBOLS, 'zc')} as symbol,
        (${one(Object.values(PRICES), 'zc')})::numeric as price, case when zc in (4, 5, 6) then 8 else 2 end as places,
        (${one(
          NATIVES.map((symbol) => PRICES[symbol as keyof typeof PRICES] ?? 1),
          'zi',
        )})::numeric as native_price,
        ${one(FIAT_CODES, 'fi')} as fiat, (${one(Object.values(FIAT), 'fi')})::numeric as fx,
        timestamptz '${START}' + seconds * interval '1 second' as at,
        case when type = 3 then case when ${draw('n', 23)} < 0.02 then '${SOURCE_ONLY_NETWORK}' else ${one(NETWORKS, `1 + (zi + floor(${draw('n', 23)} * 8)::int) % 9`)} end
          when detected or ${draw('n', 24)} < 0.5 then ${one(NETWORKS, 'zi')} end as source_network,
        case when not hashless then ${hash('int4send(5)', 'int8send(k)')} end as tx_hash,
        case when up < 0.02 then null when up < 0.05 then ${address(1, 'account_id', '0')}
          when up < 0.055 then ${address(2, 'account_id', '1')}
          else ${address(1, 'account_id', `1 + floor(payers * ${draw('k', 25)} ^ 2)::bigint`)} end as payer,
        case when uq < 0.07 then ${address(2, 'account_id', '1')} when uq < 0.09 then null
          else ${address(2, 'account_id', `2 + floor(payees * ${draw('n', 26)} ^ 2)::bigint`)} end as payee,
        ${draw('n', 27)} < 0.8 as has_request,
        ${hash('int4send(6)', 'int4send(account_id)', 'int8send(n / 300)', `int4send(floor(${draw('n', 28)} * 45)::int)`)} as request_hash,
        encode(set_byte(set_byte(raw_id, 6, get_byte(raw_id, 6) & 15 | 128), 8, get_byte(raw_id, 8) & 63 | 128), 'hex')::uuid as id,
        60000 + floor(${draw('n', 29)} * 90000)::int as gas_used,
        round((0.00000001 * (1 + ${draw('k', 30)} * 50))::numeric, 12) as gas_price,
        case when ${draw('n', 31)} < 0.15
          then ${one([5, 10, 20, 25, 49.99, 50, 99, 100, 250, 500, 1000], `1 + floor(${draw('n', 32)} * 11)::int`)}
          else greatest(exp(4.79 + 1.5 * sqrt(-2 * ln(1 - ${draw('n', 33)})) * cos(2 * pi() * ${draw('n', 34)})), 0.05) end as worth
      from (
        select *, case when ua < 0.53 then greatest(50, floor(${rows} * share / 20)) else 50 end as payers,
          case when ua < 0.53 then 2000 else 40 end as payees,
          case when zn = 10 and m >= ${Math.ceil(rows / 4)} then 2 else zn end as zi,
          substr(${hash('int4send(3)', 'int8send(n)')}, 1, 16) as raw_id,
          floor(${SPAN_SEC}::float8 * (m + ${draw('k', 10)}) / ${rows})::bigint as seconds
        from (
          select *,
            case when ua < 0.30 then 1 when ua < 0.45 then 2 when ua < 0.53 then 3
              else 3 + least(floor(exp((ua - 0.53) / 0.47 * ln(${ACCOUNTS - 2}.0::float8)))::int, ${ACCOUNTS - 3}) end as account_id,
            case when ua < 0.30 then 0.30 when ua < 0.45 then 0.15 else 0.08 end as share,
            case when us < 0.93 then 3 when us < 0.97 then 2 when us < 0.9965 then 4 when us < 0.9995 then 5 else 1 end as status,
            case when ut < 0.70 then 1 when ut < 0.90 then 2 when ut < 0.96 then 3 when ut < 0.99 then 4 end as type
          from (
            select *, ${draw('k', 2)} as ua, ${draw('n', 3)} as us, ${draw('n', 4)} as ut, ${zipf('k', 5, NETWORKS.length)} as zn,
              ${zipf('n', 6, SYMBOLS.length)} as zc, ${zipf('n', 7, FIAT_CODES.length)} as fi, ${draw('k', 8)} as up,
              ${draw('n', 9)} as uq, ${draw('n', 11)} as ur, ${draw('n', 12)} as uf, ${draw('k', 13)} < 0.7 as detected,
              ${draw('k', 14)} < 0.01 as hashless
            from (
              select n, batched, case when batched then -1 - n / ${BATCH} else n end as k,
                case when batched then n / ${BATCH} * ${BATCH} else n end as m
              from (
                select n, ${draw(`n / ${BATCH}`, 1)} < 0.15 as batched
                from generate_series(${first}::bigint, ${end - 1}::bigint) n offset 0
              ) numbers offset 0
            ) keys offset 0
          ) draws offset 0
        ) shares offset 0
      ) places offset 0
    ) facts offset 0
  ) amounts offset 0
) payments`
}

function arrayOf(values: readonly (string | number)[]): string {
  return values.every((value) => typeof value === 'number')
    ? `array[${values.join(', ')}]::float8[]`
    : `array[${values.map((value) => `'${value}'`).join(', ')}]::text[]`
}
