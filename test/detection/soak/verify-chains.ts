/** Asks the service's own proof, `waybill verify`, about each chain. */
import { runWaybill } from '../../support/process.ts'
import type { Difference } from './judge.ts'

/** @returns its differences, and what it could not decide or do */
export async function verifyChains(
  networks: readonly string[],
  environment: Readonly<Record<string, string>>,
  say: (line: string) => void,
): Promise<Difference[]> {
  const found: Difference[] = []
  for (const network of networks) {
    const { code, stdout, stderr } = await runWaybill(['verify', '--chain', network, '--json'], environment)
    const lines = stdout.split('\n').filter((line) => line !== '')
    const parsed = lines.map((line) => JSON.parse(line) as { readonly kind?: string })
    const reported = parsed.filter(({ kind }) => kind !== undefined)
    found.push(...reported.map((detail) => ({ what: `verify differs on ${network}`, detail })))
    // 3: the node that was killed no longer has the states by which a rate could be proved.
    if (code !== 0 && code !== 3 && reported.length === 0) {
      found.push({
        what: `verify of ${network} ended with ${code}`,
        detail: { summaries: parsed, stderr: stderr.slice(-2_000) },
      })
    }
    say(`verify ${network}: exit code ${code}, ${reported.length} differences`)
  }
  return found
}
