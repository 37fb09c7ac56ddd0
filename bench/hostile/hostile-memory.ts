/** Measures the memory of the service over minutes of an attack, after garbage collection. Each attack has a service of its own. */
import { readFile } from 'node:fs/promises'
import { setTimeout as wait } from 'node:timers/promises'
import { type Figure, median } from '../report.ts'
import { residentMib, startAttacker, startService } from './hostile-service.ts'

const SAMPLES = 12

interface Sample {
  readonly residentMib: number
  readonly heapMib: number
  readonly outsideMib: number
}

/** @returns figures; growth is the median of the last third of the samples less that of the third before */
export async function watchMemory(names: readonly string[], minutes: number, attackerRate: string): Promise<Figure[]> {
  const figures: Figure[] = []
  for (const [n, name] of names.entries()) {
    const service = await startService(attackerRate, ['--expose-gc', '--import', './bench/hostile/hostile-probe.ts'])
    try {
      const probe = () => sample(service.process)
      const before = await probe()
      const samples: Sample[] = []
      const target = { port: service.port, keys: service.attackerKeys, localAddress: `127.0.${n + 1}.1` }
      const attacker = await startAttacker(name, target)
      for (let each = 0; each < SAMPLES; each++) {
        await wait((minutes * 60_000) / SAMPLES)
        samples.push(await probe())
      }
      const { acts } = await attacker.stop()
      await wait(15_000)
      const after = await probe()
      const line = (read: (each: Sample) => number) => [before, ...samples, after].map((each) => read(each)).join(' ')
      console.log(`${name}: ${acts} acts in ${minutes} minutes; memory before, during, and 15 s after the attack:`)
      console.log(`  resident MiB ${line((each) => each.residentMib)}`)
      console.log(`  heap MiB ${line((each) => each.heapMib)}; outside ${line((each) => each.outsideMib)}`)
      const third = SAMPLES / 3
      const growth = (read: (each: Sample) => number) =>
        median(samples.slice(-third).map(read)) - median(samples.slice(-2 * third, -third).map(read))
      figures.push(
        {
          name: `resident.growth.${name}`,
          value: growth((each) => each.residentMib),
          unit: 'MiB',
          target: { atMost: 10 },
        },
        { name: `heap.growth.${name}`, value: growth((each) => each.heapMib), unit: 'MiB', target: { atMost: 5 } },
        { name: `resident.${name}`, value: samples.at(-1)?.residentMib ?? Number.NaN, unit: 'MiB' },
      )
    } finally {
      await service.stop()
    }
  }
  return figures
}

/** Asks the probe in the process for its memory after garbage collection. */
async function sample(served: Parameters<typeof residentMib>[0]): Promise<Sample> {
  const path = `/tmp/waybill-hostile-${served.pid}.json`
  const before = await readFile(path, 'utf8').catch(() => '')
  served.kill('SIGUSR2')
  for (let text = before; ; text = await readFile(path, 'utf8').catch(() => '')) {
    if (text !== before && text.endsWith('}')) {
      const { heapUsed, external } = JSON.parse(text) as { heapUsed: number; external: number }
      const mib = (bytes: number) => Math.round(bytes / 1024 / 1024)
      return { residentMib: residentMib(served), heapMib: mib(heapUsed), outsideMib: mib(external) }
    }
    await wait(50)
  }
}
