import type { FilterInput, SortBy } from './search-fields.ts'

export type SortOrder = 'asc' | 'desc'
export type IncludeTotal = 'none' | 'estimated' | 'exact'

/**
 * A search as it came over the wire: strings not yet parsed, enums already decoded. Undefined was not sent. An empty list counts as not
 * sent, because protobuf cannot tell the two apart.
 */
export interface SearchInput extends FilterInput {
  readonly sortBy?: SortBy | undefined
  readonly sortOrder?: SortOrder | undefined
  readonly limit?: number | undefined
  readonly cursor?: string | undefined
  readonly includeTotal?: IncludeTotal | undefined
  /** The progress of the chains is read for this search, not remembered from one before. Where there are replicas, the primary answers. */
  readonly noCache?: boolean | undefined
}
