import { request } from 'node:http'

/** An event as a page gets it. */
export interface PageEvent {
  readonly type: string
  readonly data: string
  readonly lastEventId: string
}

/** The part of `EventSource` (HTML standard, 9.2) that these tests need. A page cannot set its headers; it reconnects by itself. */
export interface EventSourceLike {
  readonly state: () => 'connecting' | 'open' | 'closed'
  readonly lastEventId: () => string
  close(): void
}

export interface EventSourceHandlers {
  readonly onEvent: (event: PageEvent) => void
  /** The connection broke. `connecting`: it is being made again; `closed`: it is not. */
  readonly onBroken: (state: 'connecting' | 'closed', status: number | undefined) => void
}

export function openEventSource(url: string, origin: string, handlers: EventSourceHandlers): EventSourceLike {
  let state: ReturnType<EventSourceLike['state']> = 'connecting'
  let lastEventId = ''
  let hangUp = () => {}

  function fail(status: number | undefined): void {
    state = 'closed'
    handlers.onBroken('closed', status)
  }

  function connect(): void {
    const headers = {
      accept: 'text/event-stream',
      'cache-control': 'no-store',
      origin,
      ...(lastEventId !== '' && { 'last-event-id': lastEventId }),
    }
    const sent = request(url, { headers, agent: false }, (response) => {
      const { 'content-type': type, 'access-control-allow-origin': allowed } = response.headers
      // CORS: a page gets nothing that its origin may not read
      const isGood =
        response.statusCode === 200 && type === 'text/event-stream' && (allowed === origin || allowed === '*')
      if (!isGood) {
        sent.destroy()
        return fail(response.statusCode)
      }
      state = 'open'
      const parse = createParser((event) => {
        lastEventId = event.lastEventId
        if (state !== 'closed') handlers.onEvent(event)
      }, lastEventId)
      response.setEncoding('utf8')
      response.on('data', parse)
      response.on('close', () => {
        if (state === 'closed') return
        state = 'connecting'
        handlers.onBroken('connecting', undefined)
        connect()
      })
      response.on('error', () => {})
    })
    sent.on('error', () => {
      if (state !== 'closed') fail(undefined)
    })
    sent.end()
    hangUp = () => void sent.destroy()
  }

  connect()
  return {
    state: () => state,
    lastEventId: () => lastEventId,
    close() {
      state = 'closed'
      hangUp()
    },
  }
}

/** Parses a stream of events (9.2.6). */
function createParser(dispatch: (event: PageEvent) => void, knownId: string): (text: string) => void {
  let rest = ''
  let data: string[] = []
  let type = ''
  let id = knownId
  const takeLine = (line: string) => {
    if (line === '') {
      if (data.length > 0) dispatch({ type: type || 'message', data: data.join('\n'), lastEventId: id })
      data = []
      type = ''
      return
    }
    const [, name = '', value = ''] = /^([^:]*):? ?(.*)$/.exec(line) ?? []
    if (name === 'data') data.push(value)
    else if (name === 'event') type = value
    else if (name === 'id') id = value
  }
  return (text) => {
    const lines = (rest + text).split(/\r\n|\n|\r/)
    rest = lines.pop() ?? ''
    for (const line of lines) takeLine(line)
  }
}
