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
