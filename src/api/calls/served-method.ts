import type { DescMethod, DescService, Message, MessageShape } from '@bufbuild/protobuf'
import { MethodOptions_IdempotencyLevel } from '@bufbuild/protobuf/wkt'
import type { ServiceImpl } from '@connectrpc/connect'
import type { Scope } from '../../auth/rules/api-key.ts'
import type { WaybillError } from '../../errors/waybill-error.ts'
import type { Call, CallContext, Messages } from './call.ts'

/** Work whose slots are shared out fairly among keys: reading pages of payments, and summarising all of them. */
export type SlotKind = 'page' | 'summary'

/** The scope that each method of a service needs, by local name, or that all need; `any` secret key; `open` for a service that needs no key. */
export type ServiceAccess<S extends DescService> =
  | 'open'
  | Scope
  | { readonly [K in keyof S['method']]: Scope | 'any' | MethodAccess }

/** The scope of a method, and how it differs from other methods. */
export interface MethodAccess {
  readonly scope: Scope
  /** A caller who can send no key may send a ticket. */
  readonly takesTicket?: true
  /** Publishable keys may call it: its answers hold nothing that a payer should not see. */
  readonly isForPages?: true
  /** Chooses how REST writes its stream, instead of the forms of all streams. */
  readonly chooseForm?: ChooseForm
  /** The kind of work whose slots are shared out among the keys; none by default. */
  readonly slot?: SlotKind
  /** The rows of a message of its stream. The reader's pace is then measured in rows, otherwise in messages. */
  readonly rowsOf?: (message: object) => number
  /** The id of an answer of its stream, for readers of server-sent events, who ask with it for what follows; undefined for none. */
  readonly eventIdOf?: (answer: object) => string | undefined
}

/** A service with its handlers. */
export interface ServedService {
  readonly service: DescService
  readonly methods: readonly ServedMethod[]
}

/** One method of it. */
export interface ServedMethod extends Omit<MethodAccess, 'scope'> {
  readonly desc: DescMethod
  /** `/payments.v1.RoutesService/GetPaymentRoutes` */
  readonly path: string
  readonly scope: Scope | 'any' | 'open'
  /** Whether it has no side effects, so that it may be called by GET. */
  readonly readsOnly: boolean
  readonly handler: Handler
  readonly check: Check | undefined
}

/** A handler without the types of its messages. */
type Handler = (request: Message | Messages, context: CallContext) => unknown

/** Reads the values of a request as the handler does, and does nothing else. Throws the same error of the input. */
type Check = (request: Message, context: CallContext) => unknown

/**
 * The checks of a service's methods, by local name. A check is called only for requests that are refused for another reason, so that their
 * senders learn of wrong values in the same answer.
 */
export type ServiceChecks<S extends DescService> = {
  readonly [K in keyof S['method']]?: (request: MessageShape<S['method'][K]['input']>, context: CallContext) => unknown
}

/**
 * Adds to a service its handlers and the scopes of its methods.
 *
 * @param handlers - as Connect's own router takes them
 */
export function serveService<S extends DescService>(
  service: S,
  handlers: ServiceImpl<S>,
  access: ServiceAccess<S>,
  checks: ServiceChecks<S> = {},
): ServedService {
  const methods = service.methods.map((desc): ServedMethod => {
    const localName = desc.localName as keyof S['method']
    const handler: unknown = handlers[localName]
    if (typeof handler !== 'function') throw new TypeError(`${service.typeName}.${desc.name} has no handler`)
    const given: Scope | MethodAccess | 'any' | 'open' = typeof access === 'string' ? access : access[localName]
    return {
      ...(typeof given === 'object' ? given : { scope: given }),
      desc,
      path: pathOf(desc),
      readsOnly: desc.idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS,
      handler: handler.bind(handlers) as Handler,
      check: checks[localName] as Check | undefined,
    }
  })
  return { service, methods }
}

/** The path of a method in gRPC, gRPC-Web and Connect. */
export function pathOf({ parent, name }: DescMethod): string {
  return `/${parent.typeName}/${name}`
}

/** What a handler answers: a message, or what `create` takes to make it; or the `Answers` of a stream. */
export type Answer = object

/** The next interceptor, or the handler. */
export type Next = (call: Call) => Promise<Answer>

/** One concern of all calls. Composed once for each method, run once for each call, whatever the protocol. */
export type Interceptor = (method: ServedMethod, next: Next) => Next

/** How REST writes the messages of a stream. */
export interface StreamFormat {
  readonly contentType: string
  /** Headers of the answer, beside those of every stream. */
  readonly headers?: Readonly<Record<string, string>>
  /** Written before the first message. */
  readonly begin?: string
  /**
   * Writes a message.
   *
   * @param answer - the message, or what `create` takes to make it
   * @param encode - writes it as JSON, on one line
   * @param id - with which the reader can ask for the messages after it; undefined for none
   */
  readonly message: (answer: object, encode: (answer: object) => string, id: string | undefined) => string
  /** Writes the error that ends a stream. */
  readonly error: (error: WaybillError) => string
  /** Written at the end of a complete stream. */
  readonly end: string
  /** Written when there has been no message for a while. */
  readonly heartbeat: string
}

/**
 * Chooses the format of an answer, for a method that has formats of its own.
 *
 * @throws WaybillError NOT_ACCEPTABLE
 */
export type ChooseForm = (accept: string | undefined, request: Message) => StreamFormat
