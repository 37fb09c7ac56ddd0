import type { Service } from '../app.ts'
import type { Config } from '../config.ts'
import type { Listener } from '../protocol/listener.ts'

const REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'is in use; stop what listens there, or set PORT',
  EACCES: 'is not for this user to listen on; set PORT to 1024 or more',
  EADDRNOTAVAIL: 'is not on this machine; set HOST',
}

/**
 * Begins to answer calls.
 *
 * @throws Error that names the host and port that cannot be had
 */
export async function listen(service: Service, config: Config): Promise<Listener> {
  try {
    return await service.listen(config)
  } catch (error) {
    const reason = REASONS[(error as NodeJS.ErrnoException).code ?? '']
    if (reason === undefined) throw error
    throw new Error(`port ${config.port} of ${config.host} ${reason}`, { cause: error })
  }
}
