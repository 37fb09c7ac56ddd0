/** Stores the demo's requests in memory, and like the service refuses other terms under a known id. */
import { type DemoRequests, type DemoRequestTerms, referenceOf } from '../../demo/history/demo-requests.ts'

export interface RecordedRequests extends DemoRequests {
  byReference: ReadonlyMap<string, DemoRequestTerms>
}

export function recordRequests(): RecordedRequests {
  const byReference = new Map<string, DemoRequestTerms>()
  return {
    byReference,
    create(terms) {
      for (const request of terms) {
        const known = byReference.get(referenceOf(request))
        if (known && withoutTime(known) !== withoutTime(request)) throw new Error(`${request.reference}: terms differ`)
        byReference.set(referenceOf(request), request)
      }
      return Promise.resolve()
    },
    isClosed: () => Promise.resolve(false),
  }
}

function withoutTime(terms: DemoRequestTerms): string {
  return JSON.stringify({ ...terms, createdAt: undefined })
}
