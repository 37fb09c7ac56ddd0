/** Something needs an optional package of npm that is not installed, which another start does not change. */
export class NotInstalledError extends Error {
  override readonly name = 'NotInstalledError'
}

/** Imports what needs optional packages. @param wants - what wants it: `METRICS_PORT` @throws NotInstalledError */
export async function importOptional<T>(wants: string, load: () => Promise<T>): Promise<T> {
  try {
    return await load()
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException
    if (code !== 'ERR_MODULE_NOT_FOUND') throw cause
    const [, name = 'it needs'] = /package '([^']+)'/.exec(message) ?? []
    const text = `${wants} needs the package ${name}, which is not installed: run npm ci with optional packages`
    throw new NotInstalledError(text, { cause })
  }
}
