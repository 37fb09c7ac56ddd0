import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Interceptor } from '@connectrpc/connect'
import { connectNodeAdapter } from '@connectrpc/connect-node'
import { callerKey } from '../../src/api/calls/call.ts'
import type { ServedService } from '../../src/api/calls/served-method.ts'
import type { Authenticate } from '../../src/auth/authenticate.ts'

/**
 * Serves handlers with connect-node alone, over HTTP/1.1: nothing of this project stands around them but an interceptor that sets the
 * caller.
 */
export async function startPlainConnect(
  services: readonly ServedService[],
  authenticate: Authenticate,
): Promise<{ readonly url: string; readonly stop: () => void }> {
  const scopes = new Map(services.flatMap(({ methods }) => methods.map(({ desc, scope }) => [desc, scope] as const)))
  const setCaller: Interceptor = (next) => async (request) => {
    const scope = scopes.get(request.method)
    if (scope === undefined || scope === 'open') throw new Error(`${request.method.name} has no scope`)
    const { header } = request
    const credentials = { apiKey: header.get('x-api-key'), account: header.get('x-account'), address: () => '' }
    request.contextValues.set(callerKey, await authenticate(credentials, scope, () => {}))
    return next(request)
  }
  const adapter = connectNodeAdapter({
    routes(router) {
      for (const { service, methods } of services) {
        const handlers = methods.map(({ desc, handler }) => [desc.localName, handler] as const)
        router.service(service, Object.fromEntries(handlers) as never)
      }
    },
    interceptors: [setCaller],
    jsonOptions: { alwaysEmitImplicit: true },
  })
  const server = createServer(adapter)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, stop: () => server.close() }
}
