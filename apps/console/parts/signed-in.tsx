import { type QueryKey, useMutation, useQueryClient } from '@tanstack/react-query'
import { createWaybill, type Waybill } from '@waybill/client'
import { createContext, type ReactNode, use, useMemo, useState } from 'react'
import { consoleTexts } from '../../shared/texts.ts'
import { Button, Form, TextField, textOf } from './fields.tsx'

/** Who is signed in: a key, held for the tab. */
export interface Session {
  readonly waybill: Waybill
  /** Of a demo, which has a key that everybody knows. */
  readonly isDemo: boolean
  /** Forgets the key and asks for one. */
  readonly leave: (why?: string) => void
}

const STORED_AT = 'waybill.key'
const SessionContext = createContext<Session | undefined>(undefined)

export function useSession(): Session {
  const session = use(SessionContext)
  if (session === undefined) throw new Error('there is no session around this part')
  return session
}

export function useWaybill(): Waybill {
  return useSession().waybill
}

/** Changes something, then refreshes what is shown of it. */
export function useAction<T, A = void>(
  queryKey: QueryKey,
  act: (waybill: Waybill, about: A) => Promise<T>,
  onDone: (done: T) => void,
) {
  const waybill = useWaybill()
  const queries = useQueryClient()
  return useMutation({
    mutationFn: (about: A) => act(waybill, about),
    onSuccess: (done) => {
      onDone(done)
      void queries.invalidateQueries({ queryKey })
    },
  })
}

/** The key that the page of a demo comes with. */
const demoKey = () => document.querySelector<HTMLMetaElement>('meta[name="waybill-key"]')?.content

/** Shows what stands inside once there is a key, and asks for one before. */
export function SessionGate({ children }: { children: ReactNode }) {
  const queries = useQueryClient()
  const [key, setKey] = useState(() => sessionStorage.getItem(STORED_AT) ?? demoKey())
  const [problem, setProblem] = useState<string>()
  const enter = (typed: string) => {
    sessionStorage.setItem(STORED_AT, typed)
    queries.clear()
    setProblem(undefined)
    setKey(typed)
  }
  const leave = (why?: string) => {
    sessionStorage.removeItem(STORED_AT)
    queries.clear()
    setProblem(why)
    setKey(undefined)
  }
  const waybill = useMemo(() => key && createWaybill({ baseUrl: location.origin, apiKey: key }), [key])
  if (!waybill) return <KeyForm problem={problem} onKey={enter} />
  return <SessionContext value={{ waybill, isDemo: key === demoKey(), leave }}>{children}</SessionContext>
}

function KeyForm({ problem, onKey }: { problem: string | undefined; onKey: (key: string) => void }) {
  const { title, label, help, enter, publishable } = consoleTexts.key
  const [wrong, setWrong] = useState(problem)
  const send = (typed: FormData) => {
    const key = textOf(typed, 'key')
    if (key.startsWith('wbp_')) setWrong(publishable)
    else if (key !== '') onKey(key)
  }
  return (
    <main className="sign-in">
      <Form className="card stack" onSend={send}>
        <h1>{title}</h1>
        <TextField {...{ label, help, wrong }} name="key" type="password" autoFocus isMono />
        <Button text={enter} kind="main" type="submit" />
      </Form>
    </main>
  )
}
