import { gzipSync } from 'node:zlib'

/** A file of an archive, at its path there. */
export interface ArchivedFile {
  readonly path: string
  readonly body: string | Uint8Array
}

const BLOCK = 512

/**
 * Packs files into a compressed tar archive (POSIX ustar). The same files give the same bytes: all have the time 0 and no owner.
 *
 * @throws RangeError when a path is longer than 100 bytes
 */
export function packTarGz(files: readonly ArchivedFile[]): Uint8Array {
  const parts = files.flatMap(({ path, body }) => {
    const bytes = Buffer.from(body)
    return [headerOf(path, bytes.length), bytes, Buffer.alloc(-bytes.length & (BLOCK - 1))]
  })
  return gzipSync(Buffer.concat([...parts, Buffer.alloc(2 * BLOCK)]), { level: 9 })
}

function headerOf(path: string, size: number): Buffer {
  if (Buffer.byteLength(path) > 100) throw new RangeError(`the path ${path} is longer than 100 bytes`)
  const header = Buffer.alloc(BLOCK)
  const octal = (value: number, digits: number) => `${value.toString(8).padStart(digits, '0')}\0`
  header.write(path, 0)
  header.write(octal(0o644, 7), 100)
  header.write(octal(0, 7), 108)
  header.write(octal(0, 7), 116)
  header.write(octal(size, 11), 124)
  header.write(octal(0, 11), 136)
  // The checksum is of the header with spaces in its own place.
  header.write('        ', 148)
  header.write('0', 156)
  header.write('ustar\x0000', 257)
  const sum = header.reduce((total, byte) => total + byte, 0)
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148)
  return header
}
