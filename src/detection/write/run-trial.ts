/** Thrown to roll back a transaction whose result alone was wanted. */
class TrialEnded extends Error {
  override readonly name = 'TrialEnded'
}

/** Runs a transaction that is rolled back after it gave its result, if it is a trial. */
export async function runTrial<T>(
  isTrial: boolean,
  run: (finish: (result: T) => void) => Promise<void>,
): Promise<T | undefined> {
  let finished: T | undefined
  const finish = (result: T) => {
    finished = result
    if (isTrial) throw new TrialEnded()
  }
  await run(finish).catch((error: unknown) => {
    if (!(error instanceof TrialEnded)) throw error
  })
  return finished
}
