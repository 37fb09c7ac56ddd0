import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'

/** A certificate with its chain, and its private key; both PEM. */
export interface TlsCertificate {
  readonly cert: string
  readonly key: string
}

/**
 * Checks that a certificate can be served now. Its issuer and names are not checked.
 *
 * @returns what is wrong, worded to follow the name of the file; empty if nothing is
 */
export function findTlsFaults(
  { cert, key }: TlsCertificate,
  now: Date,
): readonly { file: 'cert' | 'key'; fault: string }[] {
  const certificate = attempt(() => new X509Certificate(cert))
  const privateKey = attempt(() => createPrivateKey(key))
  const faults: { file: 'cert' | 'key'; fault: string }[] = []
  if (certificate === undefined) faults.push({ file: 'cert', fault: 'is not a certificate in PEM' })
  else faults.push(...findDateFaults(certificate, now).map((fault) => ({ file: 'cert' as const, fault })))
  if (privateKey === undefined) faults.push({ file: 'key', fault: 'is not a private key in PEM, or has a passphrase' })
  if (certificate !== undefined && privateKey !== undefined && !fits(certificate, privateKey)) {
    faults.push({ file: 'key', fault: 'is not the key of the first certificate in TLS_CERT' })
  }
  return faults
}

function findDateFaults({ validFromDate, validToDate }: X509Certificate, now: Date): readonly string[] {
  if (now > validToDate) return [`expired on ${validToDate.toISOString()}`]
  if (now < validFromDate) return [`is not valid before ${validFromDate.toISOString()}`]
  return []
}

function fits(certificate: X509Certificate, key: KeyObject): boolean {
  return certificate.checkPrivateKey(key)
}

function attempt<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch {
    return undefined
  }
}
