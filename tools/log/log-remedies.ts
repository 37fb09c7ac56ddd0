/** What an operator does about each warning and error, by the message as `log-messages.ts` finds it; `as`: how it reads where the code has no text. */
interface Remedy {
  readonly do: string
  readonly as?: string
}

const nothing = 'nothing, unless it goes on'
const node = 'replace the node if it goes on'

export const remedies: Readonly<Record<string, Remedy>> = {
  '(src/api/calls/log-calls.ts)': {
    as: 'call` or `request',
    do: 'error: a fault of Waybill, report it with `requestId` and `err`; warn: the dependency in `reason` is away',
  },
  '(src/api/http-server.ts)': {
    as: 'pages of {value} may not call …',
    do: 'if the site is yours, give its key that origin, or set `CORS_ORIGINS`',
  },
  'no answer could be sent': { do: 'report it, with `err`' },
  'connections are closed at once: too much abuse from there': {
    do: 'if `address` is your proxy, set `TRUSTED_PROXIES`; see [abuse](server-limits.md#abuse-by-address)',
  },
  'not ready': { do: '`err` says why; the balancer sends no calls here' },
  'calls of a key are counted by this process alone for a minute': { do: 'find out why the database is slow' },
  'the origins of publishable keys could not be read: the last known stay': { do: nothing },
  'background work failed: {name}; trying again': { do: nothing },
  'statements wait for a lock that another session holds: end its transaction': {
    do: 'end the transaction of `holder`; it is named once a minute',
  },
  'a webhook is paused': {
    do: '`reason` says why: its receiver fails or is gone; once it is well, resume it and it goes on where it stopped',
  },
  'a webhook is paused: its filter is no longer valid': { do: 'correct its filter, then resume it' },
  'too many deliveries of a webhook have failed: no new ones are sent': {
    do: 'its receiver fails; once it is well, all are tried within five minutes, or at once by `webhooks resume`',
  },
  'changes were removed from the log before a webhook had them': {
    do: 'the receiver has missed `changes`: let it read them by `changedFrom` of a search',
  },
  'sending webhooks failed; trying again': { do: nothing },
  'the configuration is wrong': { do: 'correct all of `faults`' },
  'the process ends': { do: 'see `reason`; the supervisor starts it again' },
  'fewer files may be open than the configuration needs: connections beyond that are closed at once': {
    do: 'raise the limit (`LimitNOFILE`, `ulimit -n`) to `needed`, or lower `MAX_CONNECTIONS`',
  },
  'no more files may be open: new connections are closed at once': {
    do: 'raise the limit (`LimitNOFILE`, `ulimit -n`), or lower `MAX_CONNECTIONS`; ENFILE: the system’s, `fs.file-max`',
  },
  'exports over OTLP fail': {
    do: '`reason` says why: start the collector, or correct `OTEL_EXPORTER_OTLP_ENDPOINT`; traces are lost meanwhile',
  },
  'the new certificate is not valid; the old one stays in use': { do: 'correct `faults`, then send SIGHUP again' },
  'stopping: a part that the service needs has failed': { do: 'see `reason`; the supervisor starts it again' },
  'the demo chain was created again: its stored rows are deleted': { do: 'nothing' },
  'earlier payments of the demo could not be imported': { do: 'nothing' },
  'a step of the schema waits and is tried again': { do: 'end the transaction that holds it up' },
  'the node fails and is left alone for a while': { do: node },
  'a node contradicts the chains file': { do: 'correct what `check` names, in the chains file or by another node' },
  'the node is of another chain than the chains file says': { do: 'correct its URL' },
  'routes through this contract are taken away': { do: 'correct the contract in the chains file' },
  'the nodes no longer answer a finalized block; depth decides instead': {
    do: 'check that `finality.depth` is deep enough',
  },
  'a conversion was not counted because of its rate': {
    do: 'a customer may wait: see [unmatched events](../guides/verify.md#unmatched-events)',
  },
  'a receipt is too large to be read: its payments are not matched': { do: 'report it, with the transaction' },
  'daily budgets of nodes are not kept in the database; this process counts only its own calls': { do: nothing },
  'the sources of bridge payments could not be looked up; they will be tried again': { do: nothing },
  'a bridge names a payer who has no part in the source transaction': { do: 'ask the bridge; the payer stays unknown' },
  'the source of a bridge payment was not found; it is not looked up again': { do: 'nothing; its payer stays unknown' },
  'missing figures of payments could not be looked up; they will be tried again': { do: nothing },
  'figures of a payment were not found; they are not looked up again': {
    do: 'add an archive node; `verify` then adds them',
  },
  'earlier payments of requests could not be read; they will be tried again': { do: nothing },
  'the nodes of the chain could not be compared; it is tried again': { do: nothing },
  'the chain does not answer; it is tried again': {
    do: 'after ten minutes it is an error: [FAILING](../guides/run-in-production.md#chains)',
  },
  'a look at the chain failed; it is tried again': {
    do: 'as warn: the database was away; as error: [FAILING](../guides/run-in-production.md#chains)',
  },
  'the chain does not move; it is tried again': {
    do: 'after ten minutes it is an error: [FAILING](../guides/run-in-production.md#chains)',
  },
  'the chain is stopped until an operator restarts it': {
    do: '[restart it](../guides/verify.md#a-chain-that-stopped) now: nothing is found any more',
  },
  'another process took the chain over while it was read': { do: 'nothing; often: the process stalls' },
  'blocks that a node gave could not be read again': { do: nothing },
  'the node is behind and is left alone': { do: node },
  'the node answers wrongly and is left alone': { do: 'replace the node' },
  'the daily or monthly quota of the node is used up; it is left alone for a while': {
    do: 'a larger plan, or `requestsPerDay`',
  },
  'the node limits its rate; calls are paced from now on': { do: 'nothing, or a larger plan' },
  '(src/postgres/check-database.ts)': {
    as: '… for the role …; … to its URL …',
    do: 'do what the message says',
  },
  "the machine's clock differs from the database's: keys and lags go by the database's": {
    do: 'set the clock of the one that is wrong; quotes and certificates go by the machine’s',
  },
  'embedded PostgreSQL': { do: 'see `postgres`, its own words' },
  'database pool': { do: 'report it' },
  'replica not in use; reads go to the primary': { do: 'see `fault`' },
  'read on a replica failed; the primary answers': { do: nothing },
  'worker lost: its accounts are unavailable, the others are served': { do: 'bring the worker back' },
  'the database has Citus, and tables are not sharded: run waybill migrate --distribute': { do: 'run it' },
  'a worker cannot be reached: its accounts are unavailable': { do: 'bring the worker back' },
  "a worker has settings that the service cannot use: set timezone = 'UTC', bytea_output = 'hex'": {
    do: 'set them on the worker',
  },
  'the status of a bridge transfer contradicts its delivery': { do: 'ask the bridge' },
  'the provider fails and is left alone for a while': { do: 'nothing; routes lack what it gives' },
  '(src/routing/scan/scan.ts)': {
    as: '… (a chain, in a question for routes)',
    do: 'replace the chain’s nodes if it goes on',
  },
  'what nodes can do could not be found out': { do: 'report it, with `error`' },
  'the poll for changes failed': { do: 'nothing; watches are late until the database answers' },
}
