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
