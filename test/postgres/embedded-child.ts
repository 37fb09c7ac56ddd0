/**
 * A process that runs an embedded server, for tests that kill it. Usage: node embedded-child.ts start|open DATA_DIR. It prints a line of
 * JSON when the server is ready or has failed, and releases the server when its standard input ends.
 */
import { once } from 'node:events'
import { openEmbeddedServer, startEmbeddedServer } from '../../src/postgres/embedded/embedded-server.ts'

const [mode, dataDir = ''] = process.argv.slice(2)
const settings = { fsync: 'off' }

// like a service that first finishes the calls in flight
process.on('SIGINT', () => {})

try {
  if (mode === 'start') {
    const server = await startEmbeddedServer({ dataDir, settings, lockWaitSec: 0 })
    report({ pid: server.pid, started: true })
    await inputEnds()
    await server.stop()
  } else {
    const server = await openEmbeddedServer({ dataDir, settings })
    report({ started: server.started })
    await inputEnds()
    await server.release()
  }
} catch (error) {
  const { reason, message } = error as { reason?: string; message: string }
  report({ reason, message })
}

function report(what: object): void {
  process.stdout.write(`${JSON.stringify(what)}\n`)
}

async function inputEnds(): Promise<void> {
  process.stdin.resume()
  await once(process.stdin, 'end')
}
