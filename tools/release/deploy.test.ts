import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { configHelp } from '../../src/config.ts'
import { root } from '../run-command.ts'

const read = (path: string) => readFileSync(join(root, path), 'utf8')
const { version } = JSON.parse(read('package.json')) as { version: string }

it('the nginx of the compose file is that of the guide, with two processes', () => {
  const [, guided = ''] = /```nginx\n(.*?)```/s.exec(read('docs/guides/behind-a-proxy.md')) ?? []
  const [, conf = ''] = /^# [^\n]*\n(.*)$/s.exec(read('deploy/compose/nginx.conf')) ?? []
  const server = '    server 127.0.0.1:8080 max_fails=0;'
  expect(guided).toContain(server)
  const both = [1, 2].map((n) => server.replace('127.0.0.1', `waybill-${n}`)).join('\n')
  expect(conf).toBe(guided.replaceAll(server, both))
})

it.each(['version', 'appVersion'])('the %s of the chart is that of the project', (name) => {
  expect(read('deploy/helm/waybill/Chart.yaml')).toContain(`\n${name}: ${version}\n`)
})

it('every package of the project has its version', () => {
  const paths = ['apps/console', 'apps/pay', 'clients/typescript', 'demo'].map((folder) => `${folder}/package.json`)
  expect(paths.map((path) => (JSON.parse(read(path)) as { version: string }).version)).toEqual(paths.map(() => version))
})

it('the image copies folders and files that there are', () => {
  const copied = [...read('deploy/Dockerfile').matchAll(/^COPY (?!--from)(.*) \S+$/gm)].flatMap(([, from = '']) =>
    from.split(' '),
  )
  expect(copied.length).toBeGreaterThan(10)
  expect(copied.filter((path) => !existsSync(join(root, path)))).toEqual([])
})

it('every file for operators sets only variables that there are', () => {
  const known = [...configHelp.map(([name]) => name), 'METRICS_PORT', 'NODE_ENV', 'NODE_COMPILE_CACHE']
  const set = [
    ...(/^ENV (.*)$/m.exec(read('deploy/Dockerfile'))?.[1] ?? '').matchAll(/(\w+)=/g),
    ...(/^Environment=(.*)$/m.exec(read('deploy/systemd/waybill.service'))?.[1] ?? '').matchAll(/(\w+)=/g),
    ...(/&environment\n(.*?)\n {4}volumes/s.exec(read('deploy/compose/compose.yaml'))?.[1] ?? '').matchAll(
      /^ +(\w+):/gm,
    ),
  ].map(([, name]) => name)
  expect(set.length).toBeGreaterThan(8)
  expect(set.filter((name) => !known.includes(name ?? ''))).toEqual([])
})

it('the containers of the compose file get the variables of the chains file', () => {
  const [, shared = ''] = /&waybill\n(.*?)\n\n/s.exec(read('deploy/compose/compose.yaml')) ?? []
  expect(shared).toMatch(/env_file:\n +- path: \$\{CHAINS_ENV_FILE:-\S+\n +required: false\n/)
})

it("the alerts ask for the job that the chart's monitor gives", () => {
  const [, label = ''] = /jobLabel: (\S+)/.exec(read('deploy/helm/waybill/templates/service.yaml')) ?? []
  const [, job] = read('deploy/helm/waybill/templates/_helpers.tpl').split(`${label}: `)
  const asked = [...read('deploy/prometheus/alerts.yml').matchAll(/job="(\w+)"/g)].map(([, name]) => name)
  expect([...new Set(asked)]).toEqual([job?.trim().split('\n')[0]])
})

it('a rollback brings its chains file back', () => {
  expect(read('deploy/helm/waybill/templates/chains.yaml')).toContain('pre-rollback')
})
