/** @jsxImportSource preact */
import { render } from 'preact'

render(<p>…</p>, document.getElementById('root') as HTMLElement)
