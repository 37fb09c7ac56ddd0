// Copies examples and searches the pages. Every page works without it.

function addCopyButton(pre) {
  const button = Object.assign(document.createElement('button'), { className: 'button', textContent: 'Copy' })
  const copy = async () => {
    await navigator.clipboard.writeText(pre.textContent)
    button.textContent = 'Copied'
    setTimeout(() => (button.textContent = 'Copy'), 1500)
  }
  button.addEventListener('click', () => void copy())
  const frame = Object.assign(document.createElement('div'), { className: 'copyable' })
  pre.replaceWith(frame)
  frame.append(pre, button)
}

/** How many results are shown. */
const MOST = 12

/** Searches the text of all pages. The index is loaded when the box is used first. */
function startSearch(search) {
  const [box, status, results] = search.children
  let loading
  const load = () =>
    (loading ??= Promise.all([
      import('../search.ts'),
      fetch(search.dataset.sections).then((answer) => answer.json()),
    ]).then(([{ createSearch }, all]) => createSearch(all)))
  const show = async () => {
    const words = box.value.trim()
    const find = await load().catch(() => undefined)
    if (words !== box.value.trim()) return
    if (find === undefined) loading = undefined
    const found = find?.(words)
    const says =
      found === undefined ? 'The search could not be loaded. Try again.' : `${found.length || 'Nothing'} found`
    status.textContent = words === '' ? '' : says
    results.replaceChildren(...(found ?? []).slice(0, MOST).map(toResult))
  }
  box.addEventListener('focus', () => void load().catch(() => (loading = undefined)))
  box.addEventListener('input', () => void show())
  box.addEventListener('keydown', ({ key }) => {
    if (key === 'Enter') results.querySelector('a')?.click()
  })
  search.hidden = false
}

function toResult({ url, title, excerpt }) {
  const item = document.createElement('li')
  item.append(Object.assign(document.createElement('a'), { href: url, textContent: title }), excerpt)
  return item
}

/** Examples name the port of a plain start; here they name the service that shows them. */
function nameThisService(code) {
  for (const node of code.childNodes) {
    if (node.nodeType === Node.TEXT_NODE) node.data = node.data.replaceAll('http://127.0.0.1:8080', location.origin)
    else nameThisService(node)
  }
}

for (const code of document.querySelectorAll('code')) nameThisService(code)
for (const pre of document.querySelectorAll('main pre')) addCopyButton(pre)
startSearch(document.querySelector('search'))
const menu = document.querySelector('.menu')
menu.scrollTop = menu.querySelector('[aria-current]').offsetTop - 100
