import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { composeService, type Service } from '../../app.ts'
import type { Account } from '../../domain/account.ts'
import { suggestName } from '../../domain/nearest.ts'
import { createLogger } from '../../observability/create-logger.ts'
import { type EventKind, eventKinds, type Outcome } from '../../webhooks/rules/endpoint.ts'
import { explainUrl } from '../../webhooks/rules/endpoint-url.ts'
import { isSigned, secretOf, signEvent } from '../../webhooks/rules/sign-webhook.ts'
import { createPostWebhook } from '../../webhooks/send/post-webhook.ts'
import type { Webhook, Webhooks } from '../../webhooks/webhooks.ts'
import {
  type Command,
  type CommandContext,
  type CommandInput,
  EXIT_FAILED,
  EXIT_GOOD,
  UsageError,
  writeList,
} from '../shared/command.ts'
import { readChainsToWrite, readSetup } from '../shared/read-chains.ts'
import { asUsage, STORE_VARIABLES, withAccount } from '../shared/with-store.ts'

const account = { '--account A': 'account whose changes are sent' }
const id = { ID: 'the webhook, as list has it' }
const environment = [...STORE_VARIABLES, 'CHAINS_FILE', 'WEBHOOK_ALLOW_PRIVATE']

const terms = {
  '[--filter QUERY]':
    "payments that are meant, as the query string of a search: 'status=CONFIRMED&network=BASE' (default all)",
  '[--kinds a,b]': `kinds of events: ${eventKinds.join(', ')} (default all)`,
}

/** What a command does with the webhooks of an account. */
type Act = (
  work: { readonly webhooks: Webhooks; readonly found: Account; readonly service: Service; readonly secretKey: Buffer },
  input: CommandInput,
  context: CommandContext,
) => Promise<number>

function webhooksCommand(name: string, act: Act, more: Pick<Command, 'summary' | 'takes'>): Command {
  return {
    path: ['webhooks', name],
    environment,
    ...more,
    async run(input, context) {
      const chains = await readChainsToWrite(context)
      const { webhooksAllowPrivate, logLevel } = (await readSetup(context)).config
      const logger = createLogger({ level: logLevel, stream: context.stderr })
      return withAccount(context, input.options.account, async (knex, found) => {
        const service = await composeService({ knex, chains, logger, now: () => new Date(), webhooksAllowPrivate })
        const work = { webhooks: service.webhooks.service, found, service, secretKey: service.webhooks.master }
        return asUsage(act(work, input, context))
      })
    },
  }
}

/** `webhooks create URL --account A`: writes the id and the secret. */
const create: Act = async ({ webhooks, found }, { positionals: [url], options }, { stdout, stderr, actor }) => {
  const { filter, note: description } = options
  const input = { url, kinds: parseKinds(options.kinds), filter, description }
  const { webhook, secret } = await webhooks.create(found, input, { actor })
  stdout.write(`${webhook.id}\t${secret}\n`)
  stderr.write('the secret is shown once: give it to the receiver\n')
  return EXIT_GOOD
}

const list: Act = async ({ webhooks, found }, _, context) => {
  writeList(context, (await webhooks.list(found)).map(lineOf), 'webhook')
  return EXIT_GOOD
}

function pauseOrResume(isPaused: boolean): Act {
  return async ({ webhooks, found }, { positionals: [named = ''] }, { stdout, actor }) => {
    stdout.write(`${lineOf(await webhooks.update(found, named, { kinds: [], isPaused }, { actor }))}\n`)
    return EXIT_GOOD
  }
}

const remove: Act = async ({ webhooks, found }, { positionals: [named = ''] }, { stderr, actor }) => {
  await webhooks.remove(found, named, { actor })
  stderr.write('removed\n')
  return EXIT_GOOD
}

const rotate: Act = async ({ webhooks, found }, { positionals: [named = ''] }, { stdout, stderr, actor }) => {
  const { secret } = await webhooks.rotate(found, named, { actor })
  stdout.write(`${secret}\n`)
  stderr.write('for 24 hours deliveries are signed with the old secret too\n')
  return EXIT_GOOD
}

const test: Act = async ({ webhooks, found }, { positionals: [named = ''] }, { stdout, signal }) => {
  const { webhookId, ...outcome } = await webhooks.test(found, named, signal)
  stdout.write(`${webhookId}\t${outcomeText(outcome)}\n`)
  return outcome.failure === undefined ? EXIT_GOOD : EXIT_FAILED
}

const replay: Act = async ({ webhooks, found }, { positionals: [named = ''], options }, { stdout, actor }) => {
  const { position, since: fromTime } = options
  if (position !== undefined && !/^\d{1,18}$/.test(position)) {
    throw new UsageError(`--position is "${position}": use a position of list, a whole number`)
  }
  if ((position === undefined) === (fromTime === undefined)) throw new UsageError('give --since or --position')
  const from = { fromTime, fromPosition: position === undefined ? undefined : BigInt(position) }
  stdout.write(`${lineOf(await webhooks.replay(found, named, from, { actor }))}\n`)
  return EXIT_GOOD
}

/**
 * `webhooks listen --account A`: signs and sends each change from now on to a receiver of its own or to a URL, and writes what came of it. No endpoint
 * is stored.
 */
const listen: Act = async ({ found, service, secretKey }, { options }, context) => {
  const { stdout, stderr, signal } = context
  const { source } = service.webhooks
  const { forward } = options
  const fault = forward === undefined ? undefined : explainUrl(forward, true)
  if (fault !== undefined) {
    throw new UsageError(`--forward is "${forward}": ${fault}; use a URL, such as http://localhost:3000/webhooks`)
  }
  const kinds = parseKinds(options.kinds)
  const seen = kinds.length === 0 ? eventKinds : kinds
  const read = await source.open({ accountId: found.id, kinds: seen, filter: options.filter ?? '' }, signal)
  // The same at each start, so that the receiver's configuration stays.
  const secret = secretOf(secretKey, `listen ${found.name}`, 1)
  await using stack = new AsyncDisposableStack()
  const target = forward ?? (await startVerifier(secret, stack))
  const sending = createPostWebhook({ allowsPrivate: true, now: () => new Date() })
  stack.defer(() => sending.close())
  let after = (await read({ after: 0n, changes: 0 }, signal)).lastChange
  stderr.write(`the secret is ${secret}\nlistening to changes of ${found.name}; Ctrl-C ends it\n`)
  const endpoint = randomUUID()
  while (!signal.aborted) {
    const { events, through, lastChange } = await read({ after }, signal)
    for (const event of events) {
      const signed = signEvent(endpoint, event, [secret], new Date())
      const outcome = await sending.post({ url: target, ...signed }, signal)
      stdout.write(`${event.at.toISOString()}\t${event.kind}\t${outcomeText(outcome)}\t${signed.body}\n`)
    }
    after = through
    if (through >= lastChange) await source.waitForChange(found.id, lastChange, ASK_EVERY_MS, signal).catch(() => {})
  }
  return EXIT_GOOD
}

const ASK_EVERY_MS = 60_000

/** A receiver on this machine that takes what is signed. @returns its URL */
async function startVerifier(secret: string, stack: AsyncDisposableStack): Promise<string> {
  const server = createServer((request, response) => {
    void text(request).then((body) => response.writeHead(isSigned(request.headers, body, secret) ? 204 : 401).end())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  stack.defer(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
}

export const commands: readonly Command[] = [
  webhooksCommand('create', create, {
    summary:
      'Send changes of payments and requests of an account to a URL. Writes the id and the secret that signs them.',
    takes: {
      URL: 'an https:// URL of a public host',
      ...account,
      ...terms,
      '[--note TEXT]': 'a note of up to 256 characters',
    },
  }),
  webhooksCommand('list', list, {
    summary:
      'List the webhooks of an account: id, URL, state, position of the last change, parked deliveries, lost changes.',
    takes: account,
  }),
  webhooksCommand('pause', pauseOrResume(true), { summary: 'Pause a webhook.', takes: { ...id, ...account } }),
  webhooksCommand('resume', pauseOrResume(false), {
    summary: 'Resume a webhook that was paused, by whatever. It goes on where it stopped.',
    takes: { ...id, ...account },
  }),
  webhooksCommand('remove', remove, { summary: 'Remove a webhook.', takes: { ...id, ...account } }),
  webhooksCommand('rotate', rotate, {
    summary: 'Give a webhook a new secret. For 24 hours the old one signs too.',
    takes: { ...id, ...account },
  }),
  webhooksCommand('test', test, {
    summary: 'Send a webhook.test now. Exit code 1 when it is not answered with 2xx.',
    takes: { ...id, ...account },
  }),
  webhooksCommand('replay', replay, {
    summary: 'Send again what changed in the last seven days, from a time or after a position.',
    takes: {
      ...id,
      ...account,
      '[--since TIME]': 'RFC 3339 or a date',
      '[--position N]': 'the last change that is not sent again',
    },
  }),
  webhooksCommand('listen', listen, {
    summary: 'Show the deliveries of an account in this terminal, signed and verified, without a public URL.',
    takes: {
      ...account,
      ...terms,
      '[--forward URL]': 'your receiver, also on this machine: http://localhost:3000/webhooks',
    },
  }),
]

function parseKinds(words: string | undefined): EventKind[] {
  const kinds = words === undefined ? [] : words.split(',').map((word) => word.trim())
  const wrong = kinds.find((kind) => !(eventKinds as readonly string[]).includes(kind))
  if (wrong === undefined) return kinds as EventKind[]
  throw new UsageError(`--kinds has "${wrong}", which is no kind; ${suggestName(wrong, [...eventKinds])}`)
}

function lineOf({ id: named, url, paused, position, lastChange, parked, lostChanges }: Webhook): string {
  const state = paused === undefined ? 'ACTIVE' : `PAUSED ${paused.reason} ${paused.at.toISOString()}`
  return [named, url, state, `${position} of ${lastChange}`, `${parked} parked`, `${lostChanges} lost`].join('\t')
}

function outcomeText({ status, failure }: Outcome): string {
  return failure ?? `answered ${status}`
}
