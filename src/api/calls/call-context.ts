import type {
  DescMethodBiDiStreaming,
  DescMethodClientStreaming,
  DescMethodServerStreaming,
  DescMethodUnary,
  DescService,
  MessageInitShape,
  MessageShape,
} from '@bufbuild/protobuf'
import type { Account } from '../../domain/account.ts'
import type { Logger } from '../../domain/logger.ts'

/** What the call core tells a handler about its call, whatever the protocol. */
export interface CallContext {
  /** The value of the answer's `x-request-id`. */
  readonly requestId: string
  /** For whom the caller acts; absent on methods that are open to all. */
  readonly account?: Account
  /** The id of the key that was used, which is no secret; absent as the account is. */
  readonly keyId?: string
  /** Fires when the caller hangs up or the deadline passes, never after the answer. */
  readonly signal: AbortSignal
  /** When the answer must be there, in milliseconds since 1970; absent when the caller named no deadline and none is set. */
  readonly deadlineAtMs?: number
  readonly requestHeader: Headers
  readonly responseHeader: Headers
  /** What stands behind the answer, on the protocols that have room for it: all but plain HTTP. */
  readonly responseTrailer: Headers
  /**
   * Sends the header of a stream that may have nothing to say for a while. Over plain HTTP what fails from then on can have
   * no status any more; the other protocols send it with the first message all the same.
   */
  readonly openStream: () => void
  readonly logger: Logger
}

/** Answers one call of a unary method. */
export type UnaryHandler<M extends DescMethodUnary> = (
  request: MessageShape<M['input']>,
  context: CallContext,
) => Promise<MessageInitShape<M['output']>>

/** Answers one call of a method that answers with a stream. */
export type ServerStreamHandler<M extends DescMethodServerStreaming> = (
  request: MessageShape<M['input']>,
  context: CallContext,
) => AsyncIterable<MessageInitShape<M['output']>>

/** Answers one call of a method that takes a stream. */
export type ClientStreamHandler<M extends DescMethodClientStreaming> = (
  requests: AsyncIterable<MessageShape<M['input']>>,
  context: CallContext,
) => Promise<MessageInitShape<M['output']>>

/** Answers one call of a method that takes a stream and answers with one. */
export type BiDiStreamHandler<M extends DescMethodBiDiStreaming> = (
  requests: AsyncIterable<MessageShape<M['input']>>,
  context: CallContext,
) => AsyncIterable<MessageInitShape<M['output']>>

type HandlerOf<M> = M extends DescMethodUnary
  ? UnaryHandler<M>
  : M extends DescMethodServerStreaming
    ? ServerStreamHandler<M>
    : M extends DescMethodBiDiStreaming
      ? BiDiStreamHandler<M>
      : M extends DescMethodClientStreaming
        ? ClientStreamHandler<M>
        : never

/** One handler for each method of a service, by local name. */
export type ServiceHandlers<S extends DescService> = {
  readonly [K in keyof S['method']]: HandlerOf<S['method'][K]>
}

/** The account of a call to a method that is not open. */
export function accountOf(context: CallContext): Account {
  if (context.account === undefined) throw new TypeError('a handler of an open method asked for the account')
  return context.account
}
