/** Loaded into the service: on SIGUSR2 collects garbage and writes the memory in use to a file with the process id in its name. */
import { rmSync, writeFileSync } from 'node:fs'

const path = `/tmp/waybill-hostile-${process.pid}.json`
let n = 0

process.on('SIGUSR2', () => {
  globalThis.gc?.()
  n += 1
  writeFileSync(path, JSON.stringify({ ...process.memoryUsage(), n }))
})
process.once('exit', () => rmSync(path, { force: true }))
