/**
 * What keeps two tabs, and a page before and after a reload, from asking wallets twice for one payment. A lock of the browser is held while `pay`
 * runs. A mark in the storage stands from before the wallet is asked until its answer says what became of the payment; it outlives the page.
 */
import type { AskedBefore } from './outcome.ts'
import { nameOf, type PaymentStorage, pageStorage, quietly } from './payment-memory.ts'

interface StoredMark {
  /** Of this question: one that was taken over must not clear the mark of the next. */
  readonly id: string
  readonly wallet: string
  readonly askedAtMs: number
}

/** Nobody is kept from paying by a question, or a payment, of yesterday. */
const LONGEST_MS = 86_400_000

/** @param atMs - milliseconds since 1970; a clock that was wrong may have set it ahead */
export const isOfYesterday = (atMs: number) => Math.abs(Date.now() - atMs) >= LONGEST_MS

export interface AskedMark {
  /** @returns clears the mark, unless another question has taken its place */
  readonly set: (wallet: string) => () => void
  readonly clear: () => void
}

/** The mark of a request, for whatever wallet. Without a storage there is none. */
export function markIn(storage: PaymentStorage | undefined, paymentReference: string): AskedMark {
  const name = markName(paymentReference)
  const clear = () => quietly(() => storage?.removeItem(name))
  return {
    set: (wallet) => {
      const id = `${Date.now()}-${Math.random()}`
      const mark: StoredMark = { id, wallet, askedAtMs: Date.now() }
      quietly(() => storage?.setItem(name, JSON.stringify(mark)))
      return () => {
        if (readMark(storage, paymentReference)?.id === id) clear()
      }
    },
    clear,
  }
}

const markName = (paymentReference: string) => `waybill:asked:${nameOf(paymentReference)}`

function readMark(storage: PaymentStorage | undefined, paymentReference: string): StoredMark | undefined {
  return quietly(() => {
    const mark = JSON.parse(storage?.getItem(markName(paymentReference)) ?? 'null') as Partial<StoredMark> | null
    const { id, wallet, askedAtMs } = mark ?? {}
    if (typeof id !== 'string' || typeof wallet !== 'string' || typeof askedAtMs !== 'number') return undefined
    return isOfYesterday(askedAtMs) ? undefined : { id, wallet, askedAtMs }
  })
}

/**
 * What a wallet was asked to pay for this request, by this browser, and has not answered.
 *
 * @param storage - default: `localStorage` where there is one
 * @returns undefined where nothing is open
 */
export function findAsked(paymentReference: string, storage = pageStorage()): AskedBefore | undefined {
  const mark = readMark(storage, paymentReference)
  return mark === undefined ? undefined : { wallet: mark.wallet, askedAt: new Date(mark.askedAtMs), isOtherTab: false }
}

/** Another tab pays the request, and has not come to the payment yet. */
export const IN_OTHER_TAB = {
  outcome: 'ALREADY_ASKED',
  wallet: undefined,
  askedAt: undefined,
  isOtherTab: true,
} as const

/** Whether another tab has taken the payment over: then nothing more may be asked of the wallet. */
export type IsTakenOver = () => boolean

/**
 * Runs `work` while no other tab of this browser pays the request. The browser ends the lock of a tab that is closed or has crashed.
 *
 * @param takeOver - whether a tab that pays it is to stop before its next question
 * @returns undefined where another tab pays it
 */
export async function whileAlone<T>(
  { paymentReference, takeOver }: { readonly paymentReference: string; readonly takeOver: boolean },
  work: (isTakenOver: IsTakenOver) => Promise<T>,
): Promise<T | undefined> {
  const locks = (globalThis as { navigator?: Partial<Navigator> }).navigator?.locks
  if (locks === undefined) return work(() => false)
  let isTakenOver = false
  return new Promise<T | undefined>((resolve, reject) => {
    let isBegun = false
    const begin = async (lock: object | null) => {
      isBegun = true
      if (lock === null) resolve(undefined)
      else await work(() => isTakenOver).then(resolve, reject)
    }
    const name = `waybill:pay:${nameOf(paymentReference)}`
    const hold = async () => locks.request(name, takeOver ? { steal: true } : { ifAvailable: true }, begin)
    hold().catch(() => {
      if (isBegun) isTakenOver = true
      // A page without an origin of its own has no locks.
      else work(() => false).then(resolve, reject)
    })
  })
}
