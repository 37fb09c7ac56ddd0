/** Names that are not written as a capital and small letters. */
const written: Readonly<Record<string, string>> = {
  BSC: 'BNB Chain',
  XDAI: 'Gnosis',
  ZKSYNC: 'zkSync',
  ZKSYNCERA: 'zkSync Era',
}

/** A chain as people write it: `ETHEREUM` → `Ethereum`, `ARBITRUM-ONE` → `Arbitrum One`. */
export function chainName(name: string): string {
  const words = name.split(/[-_ ]/).map((word) => word.charAt(0).toUpperCase() + word.slice(1).toLowerCase())
  return written[name.toUpperCase()] ?? words.join(' ')
}
