import { describe, expect, it } from 'vitest'
import { chooseStreamFormat } from './stream-format.ts'

describe('chooseStreamFormat', () => {
  it.each([
    [undefined, 'application/x-ndjson'],
    ['', 'application/x-ndjson'],
    ['*/*', 'application/x-ndjson'],
    ['application/*', 'application/x-ndjson'],
    ['application/json, text/plain, */*', 'application/x-ndjson'],
    ['application/x-ndjson', 'application/x-ndjson'],
    ['application/jsonl', 'application/jsonl'],
    ['text/event-stream', 'text/event-stream'],
    ['Text/Event-Stream; charset=utf-8', 'text/event-stream'],
    ['text/*', 'text/event-stream'],
    ['text/event-stream, */*', 'text/event-stream'],
    ['text/event-stream;q=0.5, application/jsonl', 'application/jsonl'],
    ['application/x-ndjson;q=0, */*', 'application/jsonl'],
    ['text/event-stream;q=0.1, */*;q=0.2', 'application/x-ndjson'],
  ])('takes Accept %j for %s', (accept, type) => {
    expect(chooseStreamFormat(accept).contentType).toBe(type)
  })

  it.each(['application/json', 'text/html', '*/*;q=0', 'text/event-stream;q=0'])('refuses Accept %s', (accept) => {
    expect(() => chooseStreamFormat(accept)).toThrow(
      `none of the formats in Accept "${accept}" is available; accept application/x-ndjson, application/jsonl, text/event-stream`,
    )
  })
})

describe('an event', () => {
  const { message } = chooseStreamFormat('text/event-stream')

  it('has its id before its data', () => {
    expect(message({}, JSON.stringify, 'a b')).toBe('id: a b\ndata: {}\n\n')
    expect(message({}, JSON.stringify, undefined)).toBe('data: {}\n\n')
  })

  it.each(['a\nb', 'a\rb', 'a\0b'])('refuses the id %j', (id) => {
    expect(() => message({}, JSON.stringify, id)).toThrow(TypeError)
  })
})
