import type { Listener } from '../../api/listener/listener.ts'
import type { Logger } from '../../domain/logger.ts'

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
