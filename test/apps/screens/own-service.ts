/** A service of an account's own beside the demo, on chains of the demo: it has keys, explorers, and a node that reads the past slowly. */
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describeChain } from '../../../demo/network/chain-config.ts'
import { DEMO_CHAINS } from '../../../demo/network/chain-specs.ts'
import { planDeployment } from '../../../demo/network/deployment.ts'
import { readPeople } from '../../../demo/network/people.ts'
import { createRpc } from '../../../demo/network/rpc.ts'
import { createTestDatabase, urlOfDatabase } from '../../support/data/database.ts'
import { runWaybill, startWaybill } from '../../support/process.ts'
import { makeTempFolder } from '../../support/temp-folder.ts'
import { freePort, type Screens } from './open-screens.ts'

const EXPLORER = {
  transaction: 'https://explorer.test/tx/{hash}',
  address: 'https://explorer.test/address/{address}',
}

export type OwnService = Awaited<ReturnType<typeof startOwnService>>

/** ETHEREUM has an explorer. On POLYGON the node allows few calls, each of one block, so that the back-fill takes most of a minute. */
export async function startOwnService({ facts }: Screens) {
  const folder = await makeTempFolder('own-service')
  const database = await createTestDatabase()
  const chains = await Promise.all([
    describe(facts, 'ETHEREUM').then((chain) => ({ ...chain, explorer: EXPLORER })),
    describe(facts, 'POLYGON').then(({ rpcUrls: [url], ...chain }) => ({
      ...chain,
      rpcUrls: [{ url, requestsPerSecond: 2, maxLogRange: 1 }],
    })),
  ])
  const chainsFile = join(folder, 'chains.json')
  await writeFile(chainsFile, JSON.stringify({ chains }))
  const environment = { CHAINS_FILE: chainsFile, DATABASE_URL: urlOfDatabase(database), PORT: `${await freePort()}` }
  const start = async () => {
    const started = startWaybill(['serve'], environment)
    const [, url = ''] = await started.says(/Waybill on (http:\S+):/)
    return { started, url }
  }
  const { started, url: baseUrl } = await start()
  let service = started
  const end = () => {
    service.kill('SIGTERM')
    return service.ended
  }
  const createKey = async (...words: string[]) => {
    const { code, stdout, stderr } = await runWaybill(['keys', 'create', '--account', 'shop', ...words], environment)
    if (code !== 0) throw new Error(stderr)
    return stdout.trim()
  }
  return {
    baseUrl,
    /** A key with these scopes. */
    keyWith: (scopes: string) => createKey('--scopes', scopes),
    publishableKey: () => createKey('--publishable', '--origins', baseUrl),
    async revoke(key: string) {
      const own = await fetch(`${baseUrl}/v1/keys:own`, { headers: { 'x-api-key': key } })
      const { id } = (await own.json()) as { id: string }
      await runWaybill(['keys', 'revoke', id], environment)
    },
    async restart() {
      await end()
      service = (await start()).started
    },
    async stop() {
      await end()
      await database.drop()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

async function describe({ chains }: Screens['facts'], name: string) {
  const spec = DEMO_CHAINS.find((each) => each.name === name)
  const chain = chains.find((each) => each.name === name)
  if (spec === undefined || chain === undefined) throw new Error(`the demo has no chain ${name}`)
  const { deployed } = planDeployment(spec, await readPeople(createRpc(chain.rpcUrl)), 0)
  return describeChain(spec, chain.rpcUrl, deployed)
}
