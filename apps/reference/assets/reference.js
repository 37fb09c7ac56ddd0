// Copies examples and searches the pages. Every page works without it.
const own = document.currentScript.dataset

function addCopyButton(pre) {
  const button = document.createElement('button')
  button.type = 'button'
  button.className = 'copy'
  button.textContent = 'Copy'
  button.addEventListener('click', () => {
    void navigator.clipboard.writeText(pre.textContent).then(() => {
      button.textContent = 'Copied'
      setTimeout(() => (button.textContent = 'Copy'), 1500)
    })
  })
  const frame = document.createElement('div')
  frame.className = 'copyable'
  pre.replaceWith(frame)
  frame.append(pre, button)
}

/** How many results are shown. */
const MOST = 12

/** Searches the text of all pages. The index is loaded when the box is used first. */
function addSearch(contents) {
  const { search, sections } = own
  const box = document.createElement('input')
  box.type = 'search'
  box.className = 'filter'
  box.placeholder = 'Search'
  box.setAttribute('aria-label', 'Search the documentation')
  const status = document.createElement('p')
  status.className = 'found'
  status.setAttribute('role', 'status')
  const results = document.createElement('ol')
  results.className = 'results'
  let loading
  const load = () =>
    (loading ??= Promise.all([import(search), fetch(sections).then((answer) => answer.json())]).then(
      ([{ createSearch }, all]) => createSearch(all),
    ))
  const show = async () => {
    const words = box.value.trim()
    contents.classList.toggle('searching', words !== '')
    if (words === '') {
      results.replaceChildren()
      status.textContent = ''
      return
    }
    const find = await load().catch(() => undefined)
    if (words !== box.value.trim()) return
    if (find === undefined) {
      loading = undefined
      status.textContent = 'The search could not be loaded. Try again.'
      return
    }
    const found = find(words)
    status.textContent = found.length === 0 ? 'Nothing found' : `${found.length} found`
    results.replaceChildren(...found.slice(0, MOST).map(toResult))
  }
  box.addEventListener('focus', () => void load().catch(() => (loading = undefined)))
  box.addEventListener('input', () => void show())
  box.addEventListener('keydown', ({ key }) => {
    if (key === 'Enter') results.querySelector('a')?.click()
  })
  contents.prepend(box, status, results)
}

function toResult({ url, title, excerpt }) {
  const item = document.createElement('li')
  const link = document.createElement('a')
  link.href = url
  link.textContent = title
  const text = document.createElement('p')
  text.textContent = excerpt
  item.append(link, text)
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
const contents = document.querySelector('.contents')
if (contents) addSearch(contents)
contents?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest' })
