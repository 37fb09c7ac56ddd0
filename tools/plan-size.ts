/**
 * Tells which machines, which disk and how much memory so many accounts and payments need, and what a payment costs, from figures that
 * bench/ measured (tools/size/measured-figures.ts).
 *
 *   npm run -s plan-size -- --accounts 5000 --payments-per-day 1000000 --years 7
 *
 * Exit code 2 when an option is wrong.
 */
import { computePlan } from './size/compute-plan.ts'
import { helpText, printPlan } from './size/print-plan.ts'
import { PlanOptionError, readOptions } from './size/read-options.ts'

try {
  const command = readOptions(process.argv.slice(2))
  if (command.help) process.stdout.write(helpText())
  else {
    const plan = computePlan(command.input)
    const text = command.json
      ? `${JSON.stringify({ input: command.input, plan }, null, 2)}\n`
      : printPlan(command.input, plan)
    process.stdout.write(text)
  }
} catch (error) {
  if (!(error instanceof PlanOptionError)) throw error
  console.error(error.message)
  process.exitCode = 2
}
