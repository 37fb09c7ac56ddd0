import { ChainFollowedError, giveUpLease, holdLease } from './chain-lease.ts'
import type { FollowedChain } from './followed-chain.ts'

/** Removes what was found above a block, and reads the chain anew from there. @throws RangeError, RpcError, ChainFollowedError */
export async function restartFrom(
  follower: FollowedChain,
  block: number,
  beforehand?: () => Promise<void>,
): Promise<void> {
  const { network, lease, chain, blocks } = follower
  const wasFollowing = follower.isFollowing
  if (!(await holdLease(follower))) throw new ChainFollowedError(network)
  try {
    const [header] = await chain.reader.headers([block])
    if (header === undefined) throw new RangeError(`${network} has no block ${block}`)
    await beforehand?.()
    await chain.writer.restart(lease, header)
  } finally {
    blocks.reset()
    if (!wasFollowing) await giveUpLease(follower)
  }
}
