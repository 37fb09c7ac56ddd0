import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import type { DescService } from '@bufbuild/protobuf'
import {
  Health,
  type HealthCheckRequest,
  HealthCheckResponse_ServingStatus as Status,
} from '../../../gen/grpc/health/v1/health_pb.js'
import { waybillError } from '../../errors/waybill-error.ts'
import { type ServedService, serveService } from '../calls/served-method.ts'

/** How often the state is read for watches, in milliseconds. */
const WATCH_EVERY_MS = 1000

async function pause(draining: AbortSignal): Promise<void> {
  const signal = draining.aborted ? undefined : draining
  await delay(WATCH_EVERY_MS, undefined, { ref: false, ...(signal && { signal }) }).catch(() => {})
}

/**
 * Makes grpc.health.v1. Every service is as ready as the process, which has the empty name. Needs no key.
 *
 * @param services - the services that can be asked for by name
 * @param isReady - never rejects
 * @param draining - fires when the process is not ready any more: watches say so at once
 */
export function createHealthService(
  services: readonly DescService[],
  isReady: () => Promise<boolean>,
  draining: AbortSignal,
): ServedService {
  const names = new Set(['', ...services.map((service) => service.typeName)])
  const statusOf = async () => ((await isReady()) ? Status.SERVING : Status.NOT_SERVING)

  let nextCheck: Promise<Status> | undefined
  /** The state after the interval. All watches share one reading. */
  function checkAgain(): Promise<Status> {
    nextCheck ??= pause(draining).then(() => {
      nextCheck = undefined
      return statusOf()
    })
    return nextCheck
  }

  async function* watch({ service }: HealthCheckRequest, signal: AbortSignal) {
    if (!names.has(service)) {
      yield { status: Status.SERVICE_UNKNOWN }
      // Services are not added while the process runs, so this state never changes.
      if (!signal.aborted) await once(signal, 'abort')
      return
    }
    let last = await statusOf()
    yield { status: last }
    while (!signal.aborted) {
      const status = await checkAgain()
      if (status !== last) yield { status }
      last = status
    }
  }

  return serveService(
    Health,
    {
      async check({ service }) {
        if (!names.has(service)) throw waybillError('UNKNOWN_SERVICE', { value: service })
        return { status: await statusOf() }
      },
      watch: (request, { signal }) => watch(request, signal),
      async list() {
        const status = await statusOf()
        return { statuses: Object.fromEntries([...names].map((name) => [name, { status }])) }
      },
    },
    'open',
  )
}
