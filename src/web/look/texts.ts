/** Every text that a screen shows, in English. A language is a file like this one. Each screen has its own object, so that a page loads its own texts alone. */

/** Words for states that both screens show. */
export const stateTexts = {
  request: {
    OPEN: 'Open',
    PARTIALLY_PAID: 'Part-paid',
    PENDING: 'Payment on its way',
    PAID: 'Paid',
    REFUNDED: 'Refunded',
    EXPIRED: 'Expired',
    CANCELLED: 'Cancelled',
  },
  payment: {
    PENDING: 'Pending',
    PARTIAL: 'Partial',
    CONFIRMED: 'Confirmed',
    REFUNDED: 'Refunded',
    FAILED: 'Failed',
  },
} as const

/** The frame of the console and what all its pages share. */
export const consoleTexts = {
  skip: 'Skip to the content',
  waiting: 'Loading',
  nav: {
    label: 'Console',
    payments: 'Payments',
    requests: 'Requests',
    why: 'Why can’t they pay?',
    chains: 'Chains',
    docs: 'Docs',
    leave: 'Forget key',
  },
  demo: { title: 'Demo', says: 'Local chains; their tokens are worth nothing. The key is "demo".' },
  notFound: { title: 'No such page', says: 'This page does not exist. Begin at the payments.' },
  key: {
    title: 'Waybill console',
    label: 'API key',
    help: 'A key of your account with the scopes payments:read, requests:read and routes:read. It is kept for this tab alone.',
    enter: 'Open',
    publishable:
      'This is a publishable key, which reaches one request at a time. The console needs a key that begins with wb_.',
  },
  errors: {
    title: 'This did not work',
    retry: 'Try again',
    requestId: 'Request id, for whoever reads the log:',
    keyRefused: 'The key is not valid, or no longer. Type another.',
    away: 'The service does not answer. Check your connection, then try again.',
    broken: 'The console has failed',
    reload: 'Load it again',
  },
  values: {
    copy: 'Copy',
    copied: 'Copied',
    openExplorer: 'Open in the explorer',
    unknown: 'not known',
  },
  paging: { newer: 'Previous', older: 'Next', label: 'Pages' },
} as const

const plural = (count: number, one: string, many: string) => (count === 1 ? one : many)

/** The list of payments. */
export const paymentsTexts = {
  title: 'Payments',
  search: 'Search payments',
  placeholder: 'Hash, wallet, reference, order number, network, status, amount, day …',
  chips: 'Filters',
  remove: 'Remove filter',
  clear: 'Clear filters',
  addFilter: 'Add filter',
  filterField: 'Filter by',
  filterValue: 'Value',
  add: 'Add',
  gone: 'Gone',
  count: (count: number, written = String(count)) => `${written} ${plural(count, 'payment', 'payments')}`,
  withoutUsd: (count: number) => `${count} without a price in US dollars`,
  more: (count: number) => `and ${count} ${plural(count, 'currency', 'currencies')} more`,
  types: { DIRECT: 'Direct', CONVERSION: 'Conversion', CROSSCHAIN: 'Across chains', RECURRING: 'Recurring' },
  columns: {
    date: 'Time',
    status: 'Status',
    amount: 'Amount',
    usd: 'US dollars',
    network: 'Network',
    payer: 'Payer',
    payee: 'Payee',
    reference: 'Reference',
  },
  paging: { label: 'Pages', before: '← Previous page', after: 'Next page →' },
  tail: {
    live: 'Live',
    still: 'New payments appear on the first page, sorted by time',
    lost: 'Connection lost, trying again …',
    paused: (held: number) => `Paused, ${held} new`,
    show: 'Show',
    pause: 'Pause',
    goOn: 'Go on',
  },
  nothing: {
    found: 'No payment matches',
    widen: 'Take a filter away, or look at another span of days.',
    yet: 'No payments yet',
    begin: 'Create a request and have it paid; the payment appears here by itself.',
  },
  chart: {
    label: 'Payments over time',
    table: 'The same as a table',
    period: 'Period',
    payments: 'Payments',
    other: 'Other',
    most: (amount: string) => (amount === '' ? '' : `highest: ${amount}`),
    measure: 'Show',
    by: 'by',
    split: 'split by',
    measures: { usd: 'US dollars', count: 'payments' },
    periods: { day: 'day', week: 'week', month: 'month' },
    splits: { network: 'network', currency: 'currency', status: 'status' },
  },
  export: {
    start: 'Export CSV',
    cancel: 'Cancel',
    progress: (rows: string) => `${rows} payments …`,
    done: (rows: string) => `${rows} payments saved`,
    name: 'payments',
  },
} as const

/** What the search box suggests. */
export const suggestTexts = {
  search: 'Search everywhere',
  between: 'Amount between',
  days: 'Days',
  spans: {
    today: 'Today',
    yesterday: 'Yesterday',
    last7: 'Last 7 days',
    last30: 'Last 30 days',
    thisMonth: 'This month',
    lastMonth: 'Last month',
  },
  fields: {
    q: 'Search',
    from: 'From day',
    to: 'To day',
    minAmount: 'At least',
    maxAmount: 'At most',
    status: 'Status',
    type: 'Type',
    network: 'Network',
    currency: 'Currency',
    paymentCurrency: 'Paid in',
    invoiceCurrency: 'Invoiced in',
    payer: 'Payer',
    payee: 'Payee',
    walletAddress: 'Payer or payee',
    txHash: 'Transaction',
    requestId: 'Request id',
    paymentReference: 'Payment reference',
    reference: 'Your reference',
  },
} as const
