import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmod, cp, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'

const INSTALLED = '/etc/nginx'

/** Why nginx cannot be tried here; undefined if it can. */
export async function reasonWithoutNginx(): Promise<string | undefined> {
  if (spawnSync('nginx', ['-v']).status !== 0) return 'nginx is not installed'
  const text = await readFile(join(INSTALLED, 'nginx.conf'), 'utf8').catch(() => '')
  return text.includes('sites-enabled') ? undefined : `${INSTALLED}/nginx.conf is not Debian's`
}

/** An nginx with the configuration that is installed, but for its site. */
export interface Nginx {
  readonly stop: () => Promise<void>
}

/**
 * Starts nginx in a folder of its own, with a copy of the installed configuration.
 *
 * @param site - takes the place of the sites that are enabled
 * @param port - one on which the site listens
 */
export async function startNginx(folder: string, site: string, port: number): Promise<Nginx> {
  await cp(INSTALLED, folder, { recursive: true, verbatimSymlinks: true })
  // Workers run as another user.
  await chmod(folder, 0o755)
  const sites = join(folder, 'sites-enabled')
  for (const name of await readdir(sites)) await rm(join(sites, name))
  await writeFile(join(sites, 'default'), site)
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(async (name) => {
    await mkdir(join(folder, name))
    await chmod(join(folder, name), 0o777)
    return `${name}_temp_path ${join(folder, name)};\n`
  })
  await writeFile(join(folder, 'conf.d', 'temporary.conf'), (await Promise.all(temporary)).join(''))
  const main = join(folder, 'nginx.conf')
  const text = (await readFile(main, 'utf8'))
    .replaceAll(INSTALLED, folder)
    .replace(/^pid .*$/m, `pid ${join(folder, 'nginx.pid')};`)
    .replaceAll('/var/log/nginx', folder)
  await writeFile(main, text)
  const child = spawn('nginx', ['-e', join(folder, 'error.log'), '-c', main, '-g', 'daemon off;'], {
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  await untilListening(child, port)
  return {
    async stop() {
      const ended = once(child, 'close')
      child.kill('SIGTERM')
      await ended
    },
  }
}

async function untilListening(child: ChildProcess, port: number): Promise<void> {
  for (;;) {
    if (child.exitCode !== null) throw new Error('nginx does not start')
    const socket = connect({ port, host: '127.0.0.1' })
    const isOpen = await Promise.race([
      once(socket, 'connect').then(() => true),
      once(socket, 'close').then(() => false),
    ]).catch(() => false)
    socket.destroy()
    if (isOpen) return
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}
