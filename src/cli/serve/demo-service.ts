import { fromJson, type JsonValue, type MessageInitShape } from '@bufbuild/protobuf'
import { timestampFromDate } from '@bufbuild/protobuf/wkt'
import type { HandlerContext } from '@connectrpc/connect'
import type { BridgeFault } from '../../../demo/bridge/bridge.ts'
import type { Demo } from '../../../demo/demo.ts'
import { createActOnce } from '../../../demo/sandbox/act-once.ts'
import { type Acting, createSandbox, type Effect } from '../../../demo/sandbox/sandbox.ts'
import {
  DemoService,
  type EffectSchema,
  type FailBridgeRequest,
  FailBridgeRequest_Outcome as Outcome,
  type ReorgRequest,
  ReorgRequest_Transactions as Transactions,
} from '../../../gen/demo/v1/demo_service_pb.js'
import { PaymentSchema } from '../../../gen/payments/v1/payment_pb.js'
import { type ServedService, type ServiceAccess, serveService } from '../../api/calls/served-method.ts'

/** Serves DemoService. Its methods call the API with the key of their caller. */
export function createDemoService({ controls }: Pick<Demo, 'controls'>): ServedService {
  const sandbox = createSandbox(controls)
  const actOnce = createActOnce()
  const once =
    <R extends object>(act: (request: R, acting: Acting) => Promise<Effect>) =>
    async (request: R, { requestHeader }: Pick<HandlerContext, 'requestHeader'>) => {
      const sent = ['x-api-key', 'x-account'].map((name) => [name, requestHeader.get(name)] as const)
      const caller = Object.fromEntries(sent.flatMap(([name, value]) => (value === null ? [] : [[name, value]])))
      const asked = { key: requestHeader.get('idempotency-key'), scope: JSON.stringify(caller), terms: request }
      return toProto(await actOnce(asked, () => act(request, { ...request, caller })))
    }
  const access = Object.fromEntries(DemoService.methods.map(({ localName }) => [localName, 'requests:write']))
  return serveService(
    DemoService,
    {
      payRequest: once(sandbox.pay),
      refundPayment: once(sandbox.refund),
      reorg: once((request: ReorgRequest, acting) => {
        return sandbox.reorg({ ...request, isMinedAgain: request.transactions === Transactions.MINED_AGAIN }, acting)
      }),
      mineBlocks: once(sandbox.mine),
      failBridge: once((request: FailBridgeRequest, acting) => {
        return sandbox.failBridge({ ...request, outcome: Outcome[request.outcome] as BridgeFault['kind'] }, acting)
      }),
      movePrice: once(sandbox.movePrice),
      moveClock: once(sandbox.moveClock),
    },
    access as ServiceAccess<typeof DemoService>,
  )
}

function toProto({ payments = [], heads = [], ...effect }: Effect): MessageInitShape<typeof EffectSchema> {
  return {
    ...effect,
    payments: payments.map((payment) =>
      fromJson(PaymentSchema, payment as object as JsonValue, { ignoreUnknownFields: true }),
    ),
    heads: heads.map(({ time, ...head }) => ({ ...head, time: timestampFromDate(time) })),
  }
}
