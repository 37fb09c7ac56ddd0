import type { Call } from './call.ts'
import { type Holder, USUAL_SHARE } from './shares.ts'

/** Who holds the places of a call. Called once its caller is known. */
export function holderOf(call: Call): Holder {
  call.holder ??= findHolder(call)
  return call.holder
}

function findHolder({ caller, incoming }: Call): Holder {
  if (caller === undefined) return keylessAt(incoming.clientAddress())
  const { pageAddress, share = USUAL_SHARE } = caller
  if (pageAddress !== undefined) return { standing: 'publishable', name: pageAddress, share: 0 }
  // A platform key acts for many accounts, each of which counts by itself.
  return { standing: 'secret', name: `${caller.keyId} ${caller.account.id}`, share }
}

export function keylessAt(address: string): Holder {
  return { standing: 'keyless', name: address, share: 0 }
}
