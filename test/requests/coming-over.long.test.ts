import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { paymentReferenceOf } from '../../src/domain/identifiers.ts'
import { urlOfDatabase } from '../support/data/database.ts'
import { runWaybill } from '../support/process.ts'
import { startTestService } from '../support/service.ts'
import { makeTempFolder } from '../support/temp-folder.ts'

it('takes over the requests of Request Network as the guide says', async () => {
  const running = await startTestService()
  onTestFinished(() => running.stop())
  const { chain, database, keys, url } = running
  const guide = readFileSync(new URL('../../docs/guides/coming-from-request-network.md', import.meta.url), 'utf8')
  const [, line = ''] = /^```json\n(.*?)\n```$/ms.exec(guide) ?? []
  const [, command = ''] = /^npm run waybill -- (import requests .*)$/m.exec(guide) ?? []
  const folder = await makeTempFolder('coming-over')
  const [requests, chains] = [join(folder, 'requests.ndjson'), join(folder, 'chains.json')]
  writeFileSync(requests, line)
  const config = { ...chain.config({ name: 'ETHEREUM', finalityDepth: 3 }), rpcUrls: [chain.rpcUrl] }
  writeFileSync(chains, JSON.stringify({ chains: [config] }))
  const words = command.split(' ').map((word) => (word === 'requests.ndjson' ? requests : word))
  const ended = await runWaybill(words, { CHAINS_FILE: chains, DATABASE_URL: urlOfDatabase(database) })
  expect(ended).toMatchObject({ code: 0 })
  const { requestId, salt, payee } = JSON.parse(line)
  const answer = await fetch(`${url}/v1/request?requestId=${requestId}`, { headers: { 'x-api-key': keys.shop } })
  const [stored] = (await answer.json()).requests
  expect(stored).toMatchObject({ salt, payee, paymentReference: paymentReferenceOf(requestId, salt, payee) })
  rmSync(folder, { recursive: true })
})
