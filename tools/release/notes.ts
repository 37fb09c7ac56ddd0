/**
 * The section of a release in the changelog; undefined where it has none with a date.
 *
 * @param home - of the repository, in which its links are found from everywhere
 */
export function notesOf(changelog: string, version: string, home: string): string | undefined {
  const section = changelog.split(/^## /m).find((each) => each.startsWith(`${version} - `))
  if (section === undefined || !/^\S+ - \d{4}-\d{2}-\d{2}\n/.test(section)) return undefined
  return `# Waybill ${section.trim()}\n`.replaceAll(/\]\((?!\w+:)/g, `](${home}/blob/v${version}/`)
}
