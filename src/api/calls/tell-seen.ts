import type { Message } from '@bufbuild/protobuf'
import type { Account } from '../../domain/account.ts'
import type { Messages } from './call.ts'
import type { CallContext } from './call-context.ts'
import type { ServedMethod, ServedService } from './call-core.ts'

/** In answers: up to where the caller has seen the database. In requests: what the answer must not be behind. */
const SEEN_HEADER = 'x-waybill-seen'

/** What callers have seen, where several servers of the database answer. */
export interface SeenTokens {
  /** @throws WaybillError for a token that was not made here for this account */
  readonly take: (account: Account, token: string) => void
  /** A token of what the account has seen, this answer included. */
  readonly tell: (account: Account, method: string) => Promise<string>
}

/**
 * Has methods take and give {@link SEEN_HEADER}. Streams give it with their first message, and so of what they showed until then; calls
 * that fail give none.
 */
export function tellSeen(services: readonly ServedService[], tokens: SeenTokens): readonly ServedService[] {
  return services.map(({ service, methods }) => ({ service, methods: methods.map((method) => tell(method, tokens)) }))
}

function tell(method: ServedMethod, tokens: SeenTokens): ServedMethod {
  const { desc, handler } = method
  const take = ({ account, requestHeader }: CallContext) => {
    const token = requestHeader.get(SEEN_HEADER)
    if (account !== undefined && token !== null) tokens.take(account, token)
  }
  const give = async ({ account, responseHeader }: CallContext) => {
    if (account !== undefined) responseHeader.set(SEEN_HEADER, await tokens.tell(account, desc.name))
  }
  async function answer(request: Message | Messages, context: CallContext): Promise<unknown> {
    take(context)
    const answered = await handler(request, context)
    await give(context)
    return answered
  }
  async function* stream(request: Message | Messages, context: CallContext): AsyncGenerator {
    take(context)
    for await (const message of handler(request, context) as AsyncIterable<unknown>) {
      // Beyond the first no header tells of it, but it is known here.
      await give(context)
      yield message
    }
  }
  return { ...method, handler: desc.methodKind === 'unary' ? answer : stream }
}
