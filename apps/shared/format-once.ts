const formats = new Map<string, unknown>()

/** A format of Intl. To make one takes longer than to use it a hundred times. */
export function formatOnce<Options, Format>(
  Kind: new (locale: string | undefined, options: Options) => Format,
  locale: string | undefined,
  options: Options,
): Format {
  const key = JSON.stringify([Kind.name, locale, options])
  if (!formats.has(key)) formats.set(key, new Kind(locale, options))
  return formats.get(key) as Format
}
