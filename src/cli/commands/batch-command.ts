import { type Command, counted, EXIT_GOOD, writeFully } from '../shared/command.ts'
import { openService, SERVICE_OPTIONS } from '../shared/service-caller.ts'

/** What is read of an answer. */
interface Batch {
  readonly payments: readonly object[]
  readonly amount: string
  readonly currency: string
  readonly expiresAt: string
  readonly warnings: readonly { readonly message: string }[]
  readonly safeFile: string
}

/** `batch REFERENCES --wallet ADDRESS --url URL` */
export const commands: readonly Command[] = [
  {
    path: ['batch'],
    summary:
      'Write the transactions by which a wallet pays many requests at once, as a running service prepares them: as JSON, or as a file for a Safe.',
    takes: {
      REFERENCES: 'payment references of open requests of one chain and currency, separated by commas',
      '--wallet ADDRESS': 'the wallet that pays; with --safe the Safe',
      '[--token NAME]': 'the token or coin to pay with (default: that of the first request)',
      '[--fee-percentage P]': "the platform's fee, in percent of each payment",
      '[--fee-address ADDRESS]': 'who gets it',
      '[--safe]': 'write the file that the Transaction Builder of a Safe imports',
      ...SERVICE_OPTIONS,
    },
    environment: [],
    async run({ positionals: [references = ''], options }, context) {
      const service = await openService(options, context)
      const { wallet, token, 'fee-percentage': feePercentage, 'fee-address': feeAddress } = options
      const message = { paymentReferences: references.split(','), wallet, token, feePercentage, feeAddress }
      const answer = await service.call('/payments.v1.RoutesService/GetBatchCalldata', message, context.signal)
      const { payments, amount, currency, expiresAt, warnings, safeFile } = answer as unknown as Batch
      const text = options['safe'] === undefined ? JSON.stringify(answer, undefined, 2) : safeFile
      await writeFully(context.stdout, `${text}\n`)
      for (const warning of warnings) context.stderr.write(`${warning.message}\n`)
      context.stderr.write(`${counted(payments.length, 'request')}, ${amount} ${currency}; send before ${expiresAt}\n`)
      return EXIT_GOOD
    },
  },
]
