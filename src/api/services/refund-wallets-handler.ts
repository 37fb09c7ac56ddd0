import type { MessageInitShape } from '@bufbuild/protobuf'
import { timestampFromDate } from '@bufbuild/protobuf/wkt'
import type { ServiceImpl } from '@connectrpc/connect'
import type { RefundWalletSchema } from '../../../gen/payments/v1/refund_wallet_pb.js'
import type { RequestsService } from '../../../gen/payments/v1/requests_service_pb.js'
import { formatAddress } from '../../domain/address.ts'
import type { RefundWallets } from '../../requests/refund-wallets.ts'
import type { RefundWallet } from '../../requests/sql/refund-wallet-repository.ts'
import { accountOf, callerOf } from '../calls/call-context.ts'

export type RefundWalletHandlers = Pick<
  ServiceImpl<typeof RequestsService>,
  'addRefundWallet' | 'listRefundWallets' | 'removeRefundWallet'
>

/** Serves the methods of RequestsService for refund wallets. */
export function createRefundWalletHandlers(wallets: RefundWallets): RefundWalletHandlers {
  return {
    async addRefundWallet(wallet, context) {
      const caller = callerOf(context)
      return walletToProto(await wallets.add(caller.account, wallet, caller, context.signal))
    },
    async listRefundWallets({ includeRemoved = false }, context) {
      const found = await wallets.list(accountOf(context), includeRemoved, context.signal)
      return { wallets: found.map(walletToProto), pagination: { limit: MAX_WALLETS_A_PAGE, hasMore: false } }
    },
    async removeRefundWallet({ address }, context) {
      const caller = callerOf(context)
      return walletToProto(await wallets.remove(caller.account, address, caller, context.signal))
    },
  }
}

/** The most wallets that an account can ever register, so there is always one page. */
const MAX_WALLETS_A_PAGE = 1_000

function walletToProto({
  address,
  note,
  registeredAt,
  removedAt,
}: RefundWallet): MessageInitShape<typeof RefundWalletSchema> {
  return {
    address: formatAddress(address),
    note,
    registeredAt: timestampFromDate(registeredAt),
    removedAt: removedAt && timestampFromDate(removedAt),
  }
}
