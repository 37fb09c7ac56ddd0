import { WaybillCallError } from '@waybill/client'
import { scopeTexts } from '../../shared/texts.ts'
import { Copyable } from './shown-values.tsx'

/** The scope that a key lacks, if that is why a call failed. */
export function missingScope(error: Error | null): string | undefined {
  return error instanceof WaybillCallError && error.reason === 'MISSING_SCOPE' ? error.metadata.scope : undefined
}

const ACCOUNT_SCOPES = ['payments:read', 'requests:read', 'routes:read', 'chains:read']

/** How to get a key that may see this part of the page. */
export function ScopeNotice({ scope }: { scope: string }) {
  const { title, any, operations, then } = scopeTexts
  const isOperators = scope === 'operations:read'
  const command = isOperators
    ? 'npm run -s waybill -- keys create --account operators --scopes chains:read,operations:read --operator'
    : `npm run -s waybill -- keys create --account ACCOUNT --scopes ${ACCOUNT_SCOPES.join(',')}${ACCOUNT_SCOPES.includes(scope) ? '' : `,${scope}`}`
  return (
    <div className="notice warn stack gap-2">
      <p>
        <strong>{title(scope)}</strong>
      </p>
      <p>{isOperators ? operations : any}</p>
      <Copyable value={command} whole />
      <p>{then}</p>
    </div>
  )
}
