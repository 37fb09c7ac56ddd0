import { readFile } from 'node:fs/promises'
import type { Listener } from '../../api/listener/listener.ts'
import { findTlsFaults, type TlsCertificate } from '../../api/listener/tls-certificate.ts'
import type { Service } from '../../app.ts'
import { type Config, ConfigError } from '../../config.ts'
import type { Logger } from '../../domain/logger.ts'

const REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'is in use; stop the process that listens there, or set PORT',
  EACCES: 'needs privileges that this user lacks; set PORT to 1024 or more',
  EADDRNOTAVAIL: 'is not available, because this machine lacks the address; set HOST',
}

/**
 * Starts the listener. With TLS, SIGHUP reloads the certificate.
 *
 * @throws Error that names the host and port when they are not available; ConfigError for a certificate that is not valid
 */
export async function listen(service: Service, config: Config, logger: Logger): Promise<Listener> {
  const tls = await readTls(config, new Date())
  try {
    const listener = await service.listen({ ...config, tls })
    if (tls !== undefined) process.on('SIGHUP', () => void renew(listener, config, logger))
    return listener
  } catch (error) {
    const reason = REASONS[(error as NodeJS.ErrnoException).code ?? '']
    if (reason === undefined) throw error
    throw new Error(`port ${config.port} of ${config.host} ${reason}`, { cause: error })
  }
}

/** When the new certificate is not valid, the old one stays in use. */
async function renew(listener: Listener, config: Config, logger: Logger): Promise<void> {
  try {
    const tls = await readTls(config, new Date())
    if (tls !== undefined) listener.renewCertificate(tls)
    logger.info({}, 'the certificate was reloaded')
  } catch (error) {
    const faults = error instanceof ConfigError ? error.faults : [String(error)]
    logger.error({ faults }, 'the new certificate is not valid; the old one stays in use')
  }
}

/** How long calls in flight may take after the stop begins. */
const GRACE_MS = 10_000

/**
 * Waits until the signal fires or a part that the service needs fails. Then stops listening and lets calls in flight finish.
 *
 * @param options.failures - each resolves with an error when its part fails
 * @throws that error, after everything has stopped
 */
export async function runUntilStopped({
  listener,
  signal,
  logger,
  failures,
}: {
  readonly listener: Listener
  readonly signal: AbortSignal
  readonly logger: Logger
  readonly failures: readonly Promise<Error>[]
}): Promise<void> {
  const stopRequested = new Promise<undefined>((resolve) => {
    if (signal.aborted) resolve(undefined)
    signal.addEventListener('abort', () => resolve(undefined), { once: true })
  })
  const failure = await Promise.race([stopRequested, ...failures])
  if (failure === undefined) logger.info({}, 'stopping: no new calls; calls in flight may finish')
  else logger.error({ reason: failure.message }, 'stopping: a part that the service needs has failed')
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
