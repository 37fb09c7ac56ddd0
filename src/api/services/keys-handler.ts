import type { MessageInitShape } from '@bufbuild/protobuf'
import { timestampFromDate } from '@bufbuild/protobuf/wkt'
import type { HandlerContext, ServiceImpl } from '@connectrpc/connect'
import { Key_State, KeyChange_Action, type KeyChangeSchema, type KeySchema } from '../../../gen/payments/v1/key_pb.js'
import type { KeysService } from '../../../gen/payments/v1/keys_service_pb.js'
import type { KeysCalls } from '../../auth/auth.ts'
import type { KeyChange } from '../../auth/list-keys.ts'
import type { IssuedApiKey } from '../../auth/manage-keys.ts'
import type { StoredApiKey } from '../../auth/sql/api-key-repository.ts'
import { waybillError } from '../../errors/waybill-error.ts'
import { accountOf, callerOf } from '../calls/call.ts'
import type { ServiceChecks } from '../calls/served-method.ts'

/** The checks of KeysService. */
export function createKeysChecks(calls: KeysCalls): ServiceChecks<typeof KeysService> {
  return {
    createKey: (request) => calls.keys.check(request),
    listKeys: (request, context) => calls.checkList(accountOf(context), request),
    listKeyChanges: (request, context) => calls.checkChanges(accountOf(context), request),
  }
}

/** Serves KeysService. */
export function createKeysHandlers(calls: KeysCalls): ServiceImpl<typeof KeysService> {
  const toProto = (key: StoredApiKey) => keyToProto(key, Key_State[calls.stateOf(key)])
  const shownOnce = ({ key, stored }: IssuedApiKey) => ({ ...toProto(stored), key })
  return {
    async createKey(request, context) {
      refuseRepeats(context)
      const caller = callerOf(context)
      return shownOnce(await calls.keys.create(caller.account.name, request, caller, context.signal))
    },
    async getOwnKey(_, context) {
      const own = await calls.find(callerOf(context).keyId)
      if (own === undefined) throw waybillError('INVALID_API_KEY', {})
      return toProto(own)
    },
    async listKeys(request, context) {
      const { keys, ...pagination } = await calls.list(accountOf(context), request, context.signal)
      return { keys: keys.map(toProto), pagination }
    },
    async rotateKey({ id, overlapSeconds }, context) {
      refuseRepeats(context)
      const caller = callerOf(context)
      const overlapMs = overlapSeconds === undefined ? undefined : overlapSeconds * 1_000
      return shownOnce(await calls.keys.rotate({ id, account: caller.account }, overlapMs, caller, context.signal))
    },
    async revokeKey({ id }, context) {
      const caller = callerOf(context)
      const { key } = await calls.keys.revoke({ id, account: caller.account }, caller, context.signal)
      return toProto(key)
    },
    async listKeyChanges(request, context) {
      const { changes, ...pagination } = await calls.listChanges(accountOf(context), request, context.signal)
      return { changes: changes.map(changeToProto), pagination }
    },
  }
}

/** An answer that shows a key is never given again. @throws WaybillError KEY_SHOWN_ONCE */
function refuseRepeats({ requestHeader }: Pick<HandlerContext, 'requestHeader'>): void {
  if (requestHeader.has('idempotency-key')) throw waybillError('KEY_SHOWN_ONCE', {})
}

function keyToProto(key: StoredApiKey, state: Key_State): MessageInitShape<typeof KeySchema> {
  const { id, hint, scopes, callsPerMinute, share, origins, shop, note, replacedBy } = key
  const { createdAt, expiresAt, revokedAt, lastUsedAt } = key
  return {
    id,
    hint,
    scopes: [...scopes],
    rate: origins === undefined ? callsPerMinute : undefined,
    share: share?.toString(),
    origins: [...(origins ?? [])],
    shop,
    note,
    state,
    createdAt: timestampFromDate(createdAt),
    expiresAt: expiresAt && timestampFromDate(expiresAt),
    revokedAt: revokedAt && timestampFromDate(revokedAt),
    lastUsedAt: lastUsedAt && timestampFromDate(lastUsedAt),
    replacedBy,
  }
}

function changeToProto({ at, action, scopes = [], ...ids }: KeyChange): MessageInitShape<typeof KeyChangeSchema> {
  return { ...ids, at: timestampFromDate(at), action: KeyChange_Action[action], scopes }
}
