import type { Message } from '@bufbuild/protobuf'
import type { HandlerContext } from '@connectrpc/connect'
import type { Account } from '../../domain/account.ts'
import type { Answers, Messages } from './call.ts'
import { callerKey } from './call-context.ts'
import type { ServedMethod, ServedService } from './served-method.ts'

/** In an answer: the position of the database that the caller has seen. In a request: the position that the answer must have reached. */
const SEEN_HEADER = 'x-waybill-seen'

/** The positions that accounts have seen, where the database has replicas. */
export interface SeenTokens {
  /** @throws WaybillError for a token that was not made here for this account */
  readonly take: (account: Account, token: string) => void
  /** A token of the position that the account has seen, this answer included. */
  readonly tell: (account: Account, method: string) => Promise<string>
}

/**
 * Makes methods take and give {@link SEEN_HEADER}. Streams give it with their first message, for what they have shown by then; calls
 * that fail give none.
 */
export function tellSeen(services: readonly ServedService[], tokens: SeenTokens): readonly ServedService[] {
  return services.map(({ service, methods }) => ({ service, methods: methods.map((method) => tell(method, tokens)) }))
}

function tell(method: ServedMethod, tokens: SeenTokens): ServedMethod {
  const { desc, handler } = method
  const take = ({ values, requestHeader }: HandlerContext) => {
    const caller = values.get(callerKey)
    const token = requestHeader.get(SEEN_HEADER)
    if (caller !== undefined && token !== null) tokens.take(caller.account, token)
  }
  const give = async ({ values, responseHeader }: HandlerContext) => {
    const caller = values.get(callerKey)
    if (caller !== undefined) responseHeader.set(SEEN_HEADER, await tokens.tell(caller.account, desc.name))
  }
  async function answer(request: Message | Messages, context: HandlerContext): Promise<unknown> {
    take(context)
    const answered = await handler(request, context)
    await give(context)
    return answered
  }
  async function* stream(request: Message | Messages, context: HandlerContext): Answers {
    take(context)
    for await (const message of handler(request, context) as Answers) {
      // After the first message the header is out, but the position is still recorded.
      await give(context)
      yield message
    }
  }
  return { ...method, handler: desc.methodKind === 'unary' ? answer : stream }
}
