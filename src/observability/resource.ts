import { randomUUID } from 'node:crypto'
import { defaultResource, detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources'
import packageFile from '../../package.json' with { type: 'json' }

const own = { 'service.name': 'waybill', 'service.version': packageFile.version, 'service.instance.id': randomUUID() }

/** What the process calls itself: OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES come first. Each process is an instance, or their counters would be mixed. */
export const resource = defaultResource()
  .merge(resourceFromAttributes(own))
  .merge(detectResources({ detectors: [envDetector] }))
