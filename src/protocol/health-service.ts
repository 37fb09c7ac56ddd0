import { setTimeout as delay } from 'node:timers/promises'
import type { DescService } from '@bufbuild/protobuf'
import {
  Health,
  type HealthCheckRequest,
  HealthCheckResponse_ServingStatus as Status,
} from '../../gen/grpc/health/v1/health_pb.js'
import { waybillError } from '../errors.ts'
import { type ServedService, serveService } from './call-core.ts'

/** How often a watched state is looked at, in milliseconds. */
const WATCH_EVERY_MS = 1000

/**
 * Makes grpc.health.v1: every service is as ready as the process, which the empty name stands for. Open to all.
 *
 * @param services - the services that can be asked for by name
 * @param isReady - never rejects
 */
export function createHealthService(services: readonly DescService[], isReady: () => Promise<boolean>): ServedService {
  const names = new Set(['', ...services.map((service) => service.typeName)])
  const statusOf = async () => ((await isReady()) ? Status.SERVING : Status.NOT_SERVING)

  async function* watch({ service }: HealthCheckRequest, signal: AbortSignal) {
    let last: Status | undefined
    for (;;) {
      const status = names.has(service) ? await statusOf() : Status.SERVICE_UNKNOWN
      if (status !== last) yield { status }
      last = status
      await delay(WATCH_EVERY_MS, undefined, { signal })
    }
  }

  return serveService(
    Health,
    {
      async check({ service }) {
        if (!names.has(service)) throw waybillError('ROUTE_NOT_FOUND', { path: service })
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
