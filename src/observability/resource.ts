import { defaultResource, detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources'

/** What the process calls itself: OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES come first. */
export const resource = defaultResource()
  .merge(resourceFromAttributes({ 'service.name': 'waybill' }))
  .merge(detectResources({ detectors: [envDetector] }))
