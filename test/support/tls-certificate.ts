import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Two self-signed certificates for localhost and 127.0.0.1, valid until 2126. */
export const tlsPaths = { first: pathsOf('localhost'), renewed: pathsOf('renewed') }

export const testCertificate = read(tlsPaths.first)
export const renewedCertificate = read(tlsPaths.renewed)

function pathsOf(name: string) {
  const folder = join(import.meta.dirname, 'tls')
  return { cert: join(folder, `${name}-cert.pem`), key: join(folder, `${name}-key.pem`) }
}

function read({ cert, key }: { readonly cert: string; readonly key: string }) {
  return { cert: readFileSync(cert, 'utf8'), key: readFileSync(key, 'utf8') }
}
