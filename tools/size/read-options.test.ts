import { expect, test } from 'vitest'
import { computePlan } from './compute-plan.ts'
import { helpText, printPlan } from './print-plan.ts'
import { PlanOptionError, readOptions } from './read-options.ts'

const good = ['--accounts', '10', '--payments-per-day', '1000', '--years', '1']

test.each([
  [[], /--accounts is missing: give a number from 1 to 100000000/],
  [['--accounts', '10', '--years', '1'], /--payments-per-day is missing/],
  [[...good, '--accounts', '0'], /--accounts is '0': give a whole number from 1/],
  [[...good, '--accounts', '1.5'], /--accounts is '1.5': give a whole number/],
  [[...good, '--accounts', '1,000'], /--accounts is '1,000'.*without separators/],
  [[...good, '--accounts', ''], /--accounts is ''/],
  [[...good, '--payments-per-day', '1e6'], /--payments-per-day is '1e6'/],
  [[...good, '--payments-per-day', '0x10'], /'0x10'/],
  [[...good, '--payments-per-day', 'Infinity'], /'Infinity'/],
  [[...good, '--payments-per-day=-5'], /'-5'/],
  [[...good, '--payments-per-day', '9'.repeat(30)], /'9{30}'/],
  [[...good, '--payments-per-day', '100000000', '--years', '7'], /more than 100 billion payments/],
  [[...good, '--years', '0'], /--years is '0': give a number from 0.01 to 100/],
  [[...good, '--years', '101'], /'101'/],
  [[...good, '--peak', '0.5'], /--peak is '0.5': give a number from 1 to 1000/],
  [[...good, '--largest-account-percent', '5'], /of 10 accounts the largest has at least 10.00 %/],
  [[...good, '--largest-account-percent', '101'], /'101'/],
  [[...good, '--price-core-hour', 'free'], /--price-core-hour is 'free'/],
  [[...good, '--price-gib-month', ' 1'], /' 1'/],
  [[...good, '--cores', '4'], /Unknown option '--cores'/],
  [[...good, 'more'], /Unexpected argument 'more'/],
  [[...good, '--peak'], /--peak/],
])('%j is refused', (args, message) => {
  expect(() => readOptions(args)).toThrow(PlanOptionError)
  expect(() => readOptions(args)).toThrow(message)
})

test('one account has all payments', () => {
  const command = readOptions([...good, '--accounts', '1'])
  expect(command).toMatchObject({ json: false, input: { largestAccountPercent: 100, priceCoreHour: 0.05 } })
})

test('the help names each option and each command that measured', () => {
  const help = helpText()
  for (const part of [
    '--payments-per-day',
    '--price-gib-month',
    'npm run bench:size -- --rows 200000',
    '23 November 2026',
  ]) {
    expect(help).toContain(part)
  }
})

test('a plan is printed without more digits than it is worth', () => {
  const command = readOptions([...good, '--payments-per-day', '1000000', '--years', '7'])
  if (command.help) throw new Error('these options do not ask for help')
  const text = printPlan(command.input, computePlan(command.input))
  expect(text).toMatch(/^payments kept +2,555,000,000$/m)
  expect(text).toMatch(/^disk: their indexes +4\.1 to 5\.7 TiB$/m)
  expect(text).toMatch(/^database servers \(workers\) +2 to 12, by memory$/m)
  expect(text).toMatch(/^one server is enough up to +210,000,000 to 1,500,000,000 payments$/m)
  expect(text.split('! ')[0]).not.toMatch(/\d\.\d{2}[1-9] (?:.iB|to)/)
})
