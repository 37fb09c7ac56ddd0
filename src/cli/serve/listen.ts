import type { Listener } from '../../api/listener/listener.ts'
import type { Service } from '../../app.ts'
import { type Config, ConfigError } from '../../config.ts'
import type { Logger } from '../../domain/logger.ts'
import { readTls } from './read-tls.ts'

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
