/**
 * A process that runs the demo's chains until it is killed: `node demo-host.ts DATA_DIR`. Writes one line of JSON to standard output, with
 * the URLs of the chains, once they run.
 */
import { startDemo } from '../../demo/demo.ts'
import { recordLogs } from '../support/logs.ts'
import { recordRequests } from './demo-requests.ts'

const dataDir = process.argv[2]
if (dataDir === undefined) throw new Error('usage: demo-host.ts DATA_DIR')
const demo = await startDemo({ dataDir, logger: recordLogs(), now: () => new Date() })
await demo.seed(recordRequests())
await demo.live({ baseUrl: 'http://127.0.0.1:8080', apiKey: 'demo', publishableKey: 'wbp_demo' })
const chains = demo.configs.map(({ name, rpcUrls, finality }) => ({ name, rpcUrl: rpcUrls[0], depth: finality.depth }))
process.stdout.write(`${JSON.stringify({ fresh: demo.freshChains, chains })}\n`)
