import type { Listener } from '../../api/listener/listener.ts'
import type { Logger } from '../../domain/logger.ts'

/** How long calls in flight may go on once the process is told to stop. */
const GRACE_MS = 10_000

/**
 * Waits until the process is told to stop or something that it cannot do without fails, then stops to listen and lets what is
 * in flight finish.
 *
 * @param options.failures - each resolves with what failed
 * @throws the failure, once all has stopped
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
  const told = new Promise<undefined>((resolve) => {
    if (signal.aborted) resolve(undefined)
    signal.addEventListener('abort', () => resolve(undefined), { once: true })
  })
  const failure = await Promise.race([told, ...failures])
  if (failure === undefined) logger.info({}, 'stopping: no new calls; those in flight finish')
  else logger.error({ reason: failure.message }, 'stopping: something that cannot be done without has failed')
  await listener.stop({ graceMs: GRACE_MS })
  if (failure !== undefined) throw failure
}
