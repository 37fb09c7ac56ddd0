import { execFileSync } from 'node:child_process'
import { fromBinary } from '@bufbuild/protobuf'
import { type FileDescriptorProto, FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt'
import { describe, expect, it } from 'vitest'
import { Code } from '../../gen/google/rpc/code_pb.js'
import { reasons } from '../../src/errors/reasons.ts'

/** The comments of `payments.v1`, which are its API reference, by the names of what they describe: `Payment.Status.PENDING`. */
const comments = readComments()

function readComments(): ReadonlyMap<string, string> {
  const image = execFileSync('buf', ['build', 'proto', '-o', '-#format=binpb'])
  const { file: files } = fromBinary(FileDescriptorSetSchema, image)
  return new Map(files.filter((file) => file.package === 'payments.v1').flatMap(commentsOf))
}

/** A path is a place in a FileDescriptorProto: numbers of fields and indexes in turn. */
function commentsOf(file: FileDescriptorProto): [string, string][] {
  const texts = new Map<string, string>(
    file.sourceCodeInfo?.location.map(({ path, leadingComments }) => [
      path.join('.'),
      leadingComments.replaceAll(/\s+/g, ' ').trim(),
    ]),
  )
  const all = (path: string, prefix: string, descs: readonly AnyDescriptor[], within: Within = () => []) =>
    descs.flatMap((desc, index): [string, string][] => {
      const [at, name] = [`${path}.${index}`, `${prefix}${desc.name}`]
      return [[name, texts.get(at) ?? ''], ...within(desc, at, `${name}.`)]
    })
  const ofEnum: Within = ({ value = [] }, at, prefix) => all(`${at}.2`, prefix, value)
  const ofMessage: Within = ({ field = [], nestedType = [], enumType = [] }, at, prefix) => [
    ...all(`${at}.2`, prefix, field),
    ...all(`${at}.3`, prefix, nestedType, ofMessage),
    ...all(`${at}.4`, prefix, enumType, ofEnum),
  ]
  const ofService: Within = ({ method = [] }, at, prefix) => all(`${at}.2`, prefix, method)
  return [
    ...all('4', '', file.messageType, ofMessage),
    ...all('5', '', file.enumType, ofEnum),
    ...all('6', '', file.service, ofService),
    ...all('7', '', file.extension),
  ]
}

interface Named {
  readonly name: string
}

/** What a file, message, enum or service descriptor has of these. */
interface AnyDescriptor extends Named {
  readonly field?: readonly Named[]
  readonly nestedType?: readonly AnyDescriptor[]
  readonly enumType?: readonly AnyDescriptor[]
  readonly value?: readonly Named[]
  readonly method?: readonly Named[]
}

type Within = (desc: AnyDescriptor, at: string, prefix: string) => [string, string][]

const FILTERED = ['SearchPaymentsRequest', 'SummarizePaymentsRequest', 'ExportPaymentsRequest', 'WatchPaymentsRequest']
const ROUTED = ['GetPaymentRoutesRequest', 'StreamPaymentRoutesRequest', 'GetPaymentCalldataRequest']

describe('the comments of payments.v1', () => {
  it('describe every service, method, message, field, enum and value in sentences', () => {
    const bad = [...comments].filter(([, comment]) => !/^["`A-Z0-9].*[.:]$/.test(comment))
    expect(comments.size).toBeGreaterThan(300)
    expect(bad).toEqual([])
  })

  it.each([
    ['the filters of payments', FILTERED],
    ['the questions for routes', ROUTED],
  ])('say the same of the same field in %s', (_, [first = '', ...others]) => {
    const names = [...comments.keys()].flatMap((name) => name.split(`${first}.`)[1] ?? [])
    for (const other of others) {
      const shared = names.filter((name) => comments.has(`${other}.${name}`))
      expect(shared.length).toBeGreaterThan(4)
      for (const name of shared) {
        expect(comments.get(`${other}.${name}`)).toBe(comments.get(`${first}.${name}`))
      }
    }
  })

  it('name only reasons of the table and values of enums', () => {
    const words = new Set([...comments.values()].flatMap(wordsInCapitals))
    const values = [...comments.keys()].map((name) => name.slice(name.lastIndexOf('.') + 1))
    const known = new Set([...Object.keys(reasons), ...Object.keys(Code), ...values, ...ROUTE_IDS])
    expect([...words].filter((word) => !known.has(word))).toEqual([])
  })
})

/** Forms and examples of a route's id. */
const ROUTE_IDS = [
  'REQUEST_NETWORK_PAYMENT',
  'SRCCHAIN_DSTCHAIN_SRCTOKEN_DSTTOKEN',
  'ARBITRUM_BASE_USDT_USDC',
  'BASE_BASE_DAI_USDC',
]

function wordsInCapitals(comment: string): readonly string[] {
  return comment.match(/\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b/g) ?? []
}
