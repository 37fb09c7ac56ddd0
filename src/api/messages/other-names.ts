/**
 * The names that other payment APIs use for fields and values of this one. A misspelt name is near the right one; these are not, and the
 * nearest name would be misleading (`page` is near `payer`).
 */

/** Names are separated by spaces. */
interface OtherNames {
  readonly others: string
  /** The first of these that the message or enum has is suggested. */
  readonly ours: string
  /** What else to know. */
  readonly note?: string
  /** Said if the message has none of `ours` but has the field `among`: the nearest name would be misleading there. */
  readonly otherwise?: { readonly among: string; readonly say: string }
}

const PAGES = 'pages are not numbered: send the nextCursor of the page before'
const RANGE = 'a range is minAmount and maxAmount'

const parameters: readonly OtherNames[] = [
  {
    others:
      'startDate start startTime startsAt from since after begin dateFrom createdFrom createdAfter fromTimestamp fromTime',
    ours: 'fromDate',
  },
  {
    others: 'endDate end endTime endsAt to until before dateTo createdTo createdBefore toTimestamp toTime',
    ours: 'toDate',
  },
  {
    others:
      'updatedFrom updatedAfter updatedSince updatedAt modifiedFrom modifiedAfter modifiedSince changedAfter changedSince ifModifiedSince lastModified',
    ours: 'changedFrom',
  },
  {
    others: 'updatedTo updatedBefore updatedUntil modifiedTo modifiedBefore changedBefore changedUntil',
    ours: 'changedTo',
  },
  {
    others:
      'offset page pageNumber pageNo pageIndex skip pageToken nextPageToken nextToken startingAfter continuation position',
    ours: 'cursor',
    note: PAGES,
  },
  { others: 'pageSize perPage size count take first maxResults maxItems pageLimit rows', ours: 'limit' },
  { others: 'sort sortField sortKey orderBy', ours: 'sortBy sort' },
  { others: 'order direction dir sortDirection sortDir', ours: 'sortOrder sort' },
  { others: 'tx txId transaction transactionHash transactionId hash', ours: 'txHash' },
  { others: 'address wallet account owner', ours: 'walletAddress wallet' },
  { others: 'walletAddress', ours: 'payee' },
  {
    others: 'payer sender senderAddress fromAddress payerAddress payerWallet',
    ours: 'payer wallet',
    otherwise: { among: 'payee', say: 'a request names no payer: anybody may pay it' },
  },
  {
    others: 'paymentReference',
    ours: '',
    otherwise: { among: 'includeTotal', say: 'GET /v1/request/{paymentReference} finds that one request' },
  },
  {
    others: 'recipient receiver receiverAddress recipientAddress toAddress payeeAddress merchant beneficiary',
    ours: 'payee',
  },
  { others: 'chain chainId chainName blockchain', ours: 'network chains' },
  { others: 'sourceChain fromChain fromNetwork originNetwork originChain', ours: 'sourceNetwork' },
  { others: 'destinationChain toChain toNetwork targetNetwork targetChain', ours: 'destinationNetwork' },
  { others: 'network networkId blockchain', ours: 'chains' },
  { others: 'token asset coin symbol tokenSymbol', ours: 'currency tokens paymentCurrency' },
  { others: 'currency currencies', ours: 'tokens invoiceCurrency' },
  { others: 'state paymentStatus requestStatus statuses', ours: 'status' },
  { others: 'kind paymentType', ours: 'type' },
  {
    others: 'amount amountGte amountFrom minimum minimumAmount minValue amountMin',
    ours: 'minAmount',
    note: RANGE,
  },
  { others: 'amountLte amountTo maximum maximumAmount maxValue amountMax', ours: 'maxAmount', note: RANGE },
  { others: 'value price total', ours: 'amount' },
  { others: 'search query filter keyword text term', ours: 'q' },
  { others: 'withTotal withCount includeCount totalCount countTotal total', ours: 'includeTotal' },
  {
    others: 'invoice invoiceId invoiceNumber orderId externalId merchantReference memo description',
    ours: 'reference',
  },
  {
    others: 'referenceStartsWith referenceBeginsWith referenceLike startsWith beginsWith prefix',
    ours: 'referencePrefix',
  },
  ...['status', 'type', 'network', 'currency', 'payer', 'payee'].map((of) => ({
    others: `not.${of} no.${of} without.${of} excluded.${of} exclude.${of} ${of}.not ${of}.ne ${of}.nin`,
    ours: `exclude.${of} exclude`,
  })),
  { others: 'groupField granularity interval period bucket', ours: 'groupBy' },
  { others: 'tz zone', ours: 'timeZone' },
  { others: 'maxFee', ours: 'maxFeeRate', note: 'a fraction of what the payee receives' },
  { others: 'maxSlippage slippageTolerance', ours: 'slippage', note: 'in percent' },
  { others: 'fee feePercent platformFee feeBps feeRate', ours: 'feePercentage', note: 'in percent' },
  { others: 'feeRecipient feeReceiver feeWallet', ours: 'feeAddress' },
  { others: 'routeId', ours: 'route' },
]

const values: readonly OtherNames[] = [
  { others: 'paid', ours: 'CONFIRMED', note: 'requests are PAID, payments CONFIRMED' },
  { others: 'confirmed', ours: 'PAID', note: 'requests are PAID, payments CONFIRMED' },
  { others: 'completed complete success successful succeeded settled done captured finalized', ours: 'CONFIRMED PAID' },
  { others: 'open unpaid new created outstanding awaiting', ours: 'OPEN PENDING' },
  { others: 'processing inProgress unconfirmed waiting', ours: 'PENDING' },
  { others: 'partial partiallyPaid underpaid', ours: 'PARTIAL PARTIALLY_PAID' },
  { others: 'refund returned reversed', ours: 'REFUNDED' },
  { others: 'failure error errored rejected', ours: 'FAILED' },
  { others: 'cancelled canceled voided void', ours: 'CANCELLED FAILED' },
  { others: 'expired overdue timedOut', ours: 'EXPIRED FAILED' },
  { others: 'overpaid excess', ours: 'PAID', note: 'overpaid=true finds the overpaid ones' },
  { others: 'time timestamp created createdAt blockTime', ours: 'DATE DAY' },
  { others: 'updated updatedAt modified modifiedAt changedAt lastModified', ours: 'CHANGED' },
  { others: 'date', ours: 'DAY' },
  { others: 'value price usd', ours: 'AMOUNT' },
  { others: 'ascending asc up oldest', ours: 'ASC' },
  { others: 'descending down newest latest', ours: 'DESC' },
  { others: 'true yes 1', ours: 'EXACT' },
  { others: 'false no 0', ours: 'NONE' },
  { others: 'cost price fee totalCost cheap', ours: 'CHEAPEST' },
  { others: 'speed time duration fast quickest', ours: 'FASTEST' },
  { others: 'swap bridge crossChainSwap', ours: 'CROSSCHAIN' },
]

/** Makes `page[size]`, `page_size` and `pageSize` one name, `filter[status]` the name `status`, and `status!` the name `statusnot`. */
function normalise(name: string): string {
  const filtered = /^filter\[([^[\]]+)\](?:\[\])?$/.exec(name)?.[1]
  return (filtered ?? name)
    .replaceAll(/^!|!$/g, 'not')
    .toLowerCase()
    .replaceAll(/[^a-z0-9]/g, '')
}

/** Longer names are not in the tables. */
const MAX_NAME_LENGTH = 64

function createSuggestion(table: readonly OtherNames[]) {
  const byName = Map.groupBy(
    table.flatMap((entry) => entry.others.split(' ').map((other) => ({ name: normalise(other), entry }))),
    ({ name }) => name,
  )
  return (given: string, known: readonly string[]): string | undefined => {
    if (given.length > MAX_NAME_LENGTH) return undefined
    const name = normalise(given)
    const same = known.find((each) => normalise(each) === name)
    if (same !== undefined) return `did you mean "${same}"?`
    for (const { entry } of byName.get(name) ?? []) {
      const ours = entry.ours.split(' ').find((each) => known.includes(each))
      if (ours !== undefined) return [`did you mean "${ours}"?`, entry.note].filter(Boolean).join(' ')
      if (entry.otherwise && known.includes(entry.otherwise.among)) return entry.otherwise.say
    }
    return undefined
  }
}

/**
 * Suggests a name of this API for a parameter or field of other APIs.
 *
 * @param known - the names that exist
 * @returns `did you mean "cursor"? …`; undefined if there is nothing to suggest
 */
export const suggestOwnName = createSuggestion(parameters)

/** As {@link suggestOwnName}, for the values of an enum. */
export const suggestOwnValue = createSuggestion(values)
