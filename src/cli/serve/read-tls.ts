import { readFile } from 'node:fs/promises'
import { findTlsFaults, type TlsCertificate } from '../../api/listener/tls-certificate.ts'
import { type Config, ConfigError } from '../../config.ts'

/**
 * Reads the certificate and its key; undefined without TLS.
 *
 * @throws ConfigError with all their faults
 */
export async function readTls({ tls }: Pick<Config, 'tls'>, now: Date): Promise<TlsCertificate | undefined> {
  if (tls === undefined) return undefined
  const [cert, key] = await Promise.allSettled([readFile(tls.certPath, 'utf8'), readFile(tls.keyPath, 'utf8')])
  const unreadable = [
    ...(cert.status === 'rejected' ? [`TLS_CERT cannot be read: ${(cert.reason as Error).message}`] : []),
    ...(key.status === 'rejected' ? [`TLS_KEY cannot be read: ${(key.reason as Error).message}`] : []),
  ]
  if (cert.status === 'rejected' || key.status === 'rejected') throw new ConfigError(unreadable)
  const certificate = { cert: cert.value, key: key.value }
  const faults = findTlsFaults(certificate, now).map(({ file, fault }) =>
    file === 'cert' ? `TLS_CERT ${tls.certPath} ${fault}` : `TLS_KEY ${tls.keyPath} ${fault}`,
  )
  if (faults.length > 0) throw new ConfigError(faults)
  return certificate
}
