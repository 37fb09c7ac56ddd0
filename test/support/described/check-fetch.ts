/** Run before each test file: checks what fetch() is answered by a service against the description of the API, and fails the call. */
const MARK = Symbol.for('waybill.checked-fetch')

interface Marked {
  [MARK]?: boolean
}

const plainFetch = globalThis.fetch

/** A service of ours answers every call with an id. Most tests of functions never call one, and load nothing. */
async function checkedFetch(...[input, init]: Parameters<typeof fetch>): Promise<Response> {
  const response = await plainFetch(input, init)
  if (!response.headers.has('x-request-id')) return response
  const { checkAnswer } = await import('./check-answer.ts')
  const url = new URL(input instanceof Request ? input.url : input)
  const method = init?.method ?? (input instanceof Request ? input.method : 'GET')
  const isJson = response.headers.get('content-type')?.startsWith('application/json') === true
  const text = isJson ? await response.clone().text() : ''
  const target = url.pathname + url.search
  const { headers, status } = response
  checkAnswer(
    { method, target },
    { status, header: (name) => headers.get(name), headerNames: [...headers.keys()], text },
  )
  return response
}

const scope = globalThis as Marked
if (scope[MARK] !== true) {
  scope[MARK] = true
  globalThis.fetch = checkedFetch
}
