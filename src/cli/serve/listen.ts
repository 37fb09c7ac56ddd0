import { X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import type { Listener } from '../../api/listener/listener.ts'
import { findTlsFaults, type TlsCertificate } from '../../api/listener/tls-certificate.ts'
import type { Service } from '../../app.ts'
import { type Config, ConfigError } from '../../config.ts'
import type { Logger } from '../../domain/logger.ts'
import type { Meter } from '../../domain/telemetry/telemetry.ts'
import type { StopSignals } from '../shared/command.ts'

/** Of a host or port that cannot be listened on. */
const FAULTS = new Set(['EACCES', 'EADDRNOTAVAIL', 'EINVAL', 'ENOTFOUND', 'EAI_AGAIN'])

const CERTIFICATE_DAYS = {
  name: 'waybill_certificate_days_left',
  help: 'Days until the certificate of the port expires.',
}

/**
 * Starts the listener. With TLS, SIGHUP reloads the certificate.
 *
 * @throws Error when another process listens there; ConfigError for a host, port or certificate that cannot be used
 */
export async function listen(
  service: Service,
  config: Config,
  { logger, meter }: { readonly logger: Logger; readonly meter: Meter | undefined },
): Promise<Listener> {
  let tls = await readTls(config, new Date())
  const listener = await naming('PORT', config.host, config.port, () => service.listen({ ...config, tls }))
  meter?.observe([CERTIFICATE_DAYS], () => (tls === undefined ? [] : [[CERTIFICATE_DAYS.name, daysLeftOf(tls.cert)]]))
  if (tls === undefined) return listener
  process.on('SIGHUP', () => {
    void renew(listener, config, logger).then((renewed) => {
      tls = renewed ?? tls
    })
  })
  return listener
}

function daysLeftOf(certificate: string): number {
  return (new X509Certificate(certificate).validToDate.getTime() - Date.now()) / 86_400_000
}

/**
 * Listens, and says of a failure what is to be set otherwise.
 *
 * @param name - the variable of the port
 * @throws ConfigError for a host that is wrong; Error that names host and port
 */
export async function naming<T>(name: string, host: string, port: number, start: () => Promise<T>): Promise<T> {
  try {
    return await start()
  } catch (error) {
    const { code = '', message } = error as NodeJS.ErrnoException
    if (code === 'EADDRINUSE') {
      throw new Error(`port ${port} of ${host} is in use; stop the process that listens there, or set ${name}`, {
        cause: error,
      })
    }
    if (!FAULTS.has(code)) throw error
    throw new ConfigError([`HOST is ${host} and ${name} is ${port}, where this process cannot listen: ${message}`])
  }
}

/** When the new certificate is not valid, the old one stays in use. */
async function renew(listener: Listener, config: Config, logger: Logger): Promise<TlsCertificate | undefined> {
  try {
    const tls = await readTls(config, new Date())
    if (tls !== undefined) listener.renewCertificate(tls)
    logger.info({}, 'the certificate was reloaded')
    return tls
  } catch (error) {
    const faults = error instanceof ConfigError ? error.faults : [String(error)]
    logger.error({ faults }, 'the new certificate is not valid; the old one stays in use')
    return undefined
  }
}

/** How long calls in flight may take after the stop begins. */
const GRACE_MS = 10_000

/**
 * Waits until the signal fires or a part that the service needs fails. Then stops listening and lets calls in flight finish. After a signal, calls
 * first go on as before for a while, so that balancers send them elsewhere.
 *
 * @param options.delayMs - how long
 * @param options.failures - each resolves with an error when its part fails
 * @throws that error, after everything has stopped
 */
export async function runUntilStopped({
  listener,
  context: { signal, delayStop },
  delayMs,
  logger,
  failures,
}: {
  readonly listener: Listener
  readonly context: StopSignals
  readonly delayMs: number
  readonly logger: Logger
  readonly failures: readonly Promise<Error>[]
}): Promise<void> {
  const stopRequested = new Promise<undefined>((resolve) => {
    if (signal.aborted) resolve(undefined)
    signal.addEventListener('abort', () => resolve(undefined), { once: true })
  })
  const failure = await Promise.race([stopRequested, ...failures])
  if (failure !== undefined) {
    logger.error({ reason: failure.message }, 'stopping: a part that the service needs has failed')
  } else {
    if (delayMs > 0) logger.info({ delayMs }, 'stopping: not ready any more; calls go on during the delay')
    listener.drain()
    await delayStop(delayMs)
    logger.info({}, 'stopping: no new calls; calls in flight may finish')
  }
  await listener.stop({ graceMs: GRACE_MS })
  if (failure !== undefined) throw failure
}

/**
 * Reads the certificate and its key; undefined without TLS.
 *
 * @throws ConfigError with all their faults
 */
export async function readTls({ tls }: Pick<Config, 'tls'>, now: Date): Promise<TlsCertificate | undefined> {
  if (tls === undefined) return undefined
  const [cert, key] = await Promise.allSettled([readFile(tls.certPath, 'utf8'), readFile(tls.keyPath, 'utf8')])
  const unreadable = [
    ...(cert.status === 'rejected' ? [`TLS_CERT cannot be read: ${(cert.reason as Error).message}`] : []),
    ...(key.status === 'rejected' ? [`TLS_KEY cannot be read: ${(key.reason as Error).message}`] : []),
  ]
  if (cert.status === 'rejected' || key.status === 'rejected') throw new ConfigError(unreadable)
  const certificate = { cert: cert.value, key: key.value }
  const faults = findTlsFaults(certificate, now).map(({ file, fault }) =>
    file === 'cert' ? `TLS_CERT ${tls.certPath} ${fault}` : `TLS_KEY ${tls.keyPath} ${fault}`,
  )
  if (faults.length > 0) throw new ConfigError(faults)
  return certificate
}
