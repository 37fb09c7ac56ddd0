import type { Statement } from '../../../postgres/statement.ts'
import type { Shape } from '../../plan/search-plan.ts'
import { gatherStatement } from './gather.ts'
import { monthsStatement } from './months.ts'
import type { PageRequest } from './page-rows.ts'
import { plainStatement } from './plain.ts'
import { slicesStatement } from './slices.ts'
import { walkStatement } from './walk.ts'

/** The SQL of a shape. */
export function shapeStatement(shape: Shape, request: PageRequest): Statement {
  switch (shape.kind) {
    case 'walk':
      return walkStatement(shape, request)
    case 'slices':
      return slicesStatement(shape, request)
    case 'gather':
      return gatherStatement(shape, request)
    case 'months':
      return monthsStatement(shape, request)
    case 'plain':
      return plainStatement(request)
  }
}
